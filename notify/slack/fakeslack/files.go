package fakeslack

import (
	"encoding/json"
	"io"
	"net/http"
	"path"
	"strconv"
	"strings"
)

// upload is a file on its way in.
type upload struct {
	File
	length    int
	complete  bool
	pollsLeft int
}

func (s *Server) uploadURL(req *request) answer {
	length, err := strconv.Atoi(req.form("length"))
	if err != nil || length <= 0 || req.form("filename") == "" {
		return fail("invalid_arguments")
	}
	s.serial++
	id := "F" + strconv.Itoa(1000+s.serial)
	s.files[id] = &upload{
		File:   File{ID: id, Name: req.form("filename"), AltText: req.form("alt_txt")},
		length: length, pollsLeft: s.o.FilePolls,
	}
	return answer{"upload_url": "http://" + req.Host + "/upload/" + id, "file_id": id}
}

// takeUpload receives the bytes, raw or as a form.
func (s *Server) takeUpload(w http.ResponseWriter, r *http.Request, id string) {
	call := Call{Method: "upload", At: s.now()}
	if f := s.fault("upload"); f != nil && f.before(w, r, s.closed) {
		s.record(call, f.label())
		return
	}
	var content []byte
	var err error
	if strings.HasPrefix(r.Header.Get("Content-Type"), "multipart/") {
		file, _, ferr := r.FormFile("file")
		if ferr != nil {
			http.Error(w, "no file", http.StatusBadRequest)
			return
		}
		content, err = io.ReadAll(file)
	} else {
		content, err = io.ReadAll(r.Body)
	}
	s.mu.Lock()
	u := s.files[id]
	bad := err != nil || u == nil || len(content) != u.length
	if !bad {
		u.Content = content
	}
	s.mu.Unlock()
	if bad {
		s.record(call, "400")
		http.Error(w, "bad upload", http.StatusBadRequest)
		return
	}
	s.record(call, "")
	_, _ = io.WriteString(w, "OK - "+strconv.Itoa(len(content))) // The client has sent all it had.
}

func (s *Server) completeUpload(req *request) answer {
	var files []struct{ ID, Title string }
	if err := json.Unmarshal([]byte(req.form("files")), &files); err != nil || len(files) == 0 {
		return fail("invalid_arguments")
	}
	// Names are refused here, ids of channels are not.
	c, ok := s.channels[req.form("channel_id")]
	switch {
	case !ok:
		return fail("channel_not_found")
	case c.Absent:
		return fail("not_in_channel")
	case c.Archived:
		return fail("is_archived")
	}
	ts := req.form("thread_ts")
	if ts != "" && s.message(c.ID, ts) == nil {
		return fail("thread_not_found")
	}
	m := &Message{Channel: c.ID, TS: s.nextTS(), User: BotUser, ThreadTS: ts, Text: req.form("initial_comment")}
	done := []answer{}
	for _, f := range files {
		u := s.files[f.ID]
		if u == nil || u.Content == nil || u.complete {
			return fail("file_not_found")
		}
		u.Title, u.complete = f.Title, true
		u.MimeType = mimeType(u.Name)
		m.Files = append(m.Files, u.File)
		done = append(done, answer{"id": u.ID, "title": u.Title})
	}
	c.messages = append(c.messages, m)
	return answer{"files": done}
}

func (s *Server) fileInfo(req *request) answer {
	u := s.files[req.form("file")]
	if u == nil || !u.complete {
		return fail("file_not_found")
	}
	mime := u.MimeType
	if u.pollsLeft > 0 {
		u.pollsLeft--
		mime = "" // Still being processed.
	}
	return answer{"file": answer{"id": u.ID, "name": u.Name, "title": u.Title, "mimetype": mime, "alt_txt": u.AltText}}
}

// FileByID returns an uploaded file.
func (s *Server) FileByID(id string) (File, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	u, ok := s.files[id]
	if !ok || !u.complete {
		return File{}, false
	}
	return u.File, true
}

func mimeType(name string) string {
	switch path.Ext(name) {
	case ".png":
		return "image/png"
	case ".txt":
		return "text/plain"
	default:
		return "application/octet-stream"
	}
}
