package fakeslack

import (
	"encoding/json"
	"slices"
	"strconv"
)

// View is a modal that was opened.
type View struct {
	ID              string          `json:"id"`
	Hash            string          `json:"hash"`
	CallbackID      string          `json:"callback_id"`
	PrivateMetadata string          `json:"private_metadata"`
	Title           json.RawMessage `json:"title"`
	Submit          json.RawMessage `json:"submit"`
	Close           json.RawMessage `json:"close"`
	Type            string          `json:"type"`
	Blocks          json.RawMessage `json:"blocks"`
}

// Views returns the modals that were opened, oldest first, as they are now.
func (s *Server) Views() []View {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.views)
}

func (s *Server) openView(req *request) answer {
	expires, ok := s.triggers[req.form("trigger_id")]
	switch {
	case !ok:
		return fail("invalid_trigger_id")
	case s.now().After(expires):
		return fail("expired_trigger_id")
	}
	delete(s.triggers, req.form("trigger_id")) // Good for one use.
	v, bad := parseView(req.form("view"))
	if bad != nil {
		return bad
	}
	s.serial++
	v.ID, v.Hash = "V"+strconv.Itoa(s.serial), strconv.Itoa(s.serial)
	s.views = append(s.views, v)
	return answer{"view": v}
}

func (s *Server) updateView(req *request) answer {
	for i := range s.views {
		if s.views[i].ID != req.form("view_id") {
			continue
		}
		if h := req.form("hash"); h != "" && h != s.views[i].Hash {
			return fail("hash_conflict")
		}
		v, bad := parseView(req.form("view"))
		if bad != nil {
			return bad
		}
		s.serial++
		v.ID, v.Hash = s.views[i].ID, strconv.Itoa(s.serial)
		s.views[i] = v
		return answer{"view": v}
	}
	return fail("not_found")
}

func parseView(raw string) (View, answer) {
	var v View
	if err := json.Unmarshal([]byte(raw), &v); err != nil || v.Type != "modal" {
		return View{}, fail("invalid_arguments", "[ERROR] view must be a modal [json-pointer:/view]")
	}
	check := &validator{view: true, ids: map[string]bool{}}
	for name, text := range map[string]json.RawMessage{"title": v.Title, "submit": v.Submit, "close": v.Close} {
		if len(text) == 0 || string(text) == "null" {
			if name == "title" {
				check.fail("/view/title", "missing required field")
			}
			continue
		}
		var o any
		if err := json.Unmarshal(text, &o); err != nil {
			check.fail("/view/"+name, "must be an object")
			continue
		}
		check.text("/view/"+name, o, "plain_text", 24)
	}
	if len(v.CallbackID) > maxIDLength {
		check.fail("/view/callback_id", "must be less than %d characters", maxIDLength+1)
	}
	if len(v.PrivateMetadata) > 3000 {
		check.fail("/view/private_metadata", "must be less than 3001 characters")
	}
	slices.Sort(check.messages)
	if len(check.messages) > 0 {
		return View{}, fail("invalid_arguments", check.messages...)
	}
	if code, messages := validate(v.Blocks, true); code != "" {
		return View{}, fail("invalid_arguments", messages...)
	}
	return v, nil
}
