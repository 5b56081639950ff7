package fakeslack

import (
	"net/http"
	"strconv"
)

// Fault makes the next calls fail. Exactly one of Error, Status, Hang and Drop says how.
type Fault struct {
	// Method restricts it to one method, for example "chat.update"; empty is any.
	Method string
	// Times is how many calls fail; 0 is one.
	Times int
	// Error is an error code that is answered with HTTP 200.
	Error string
	// Messages go into response_metadata.
	Messages []string
	// Needed names the missing scope.
	Needed string
	// Status is answered without JSON. RetryAfter is its header, left out when empty. Body is its body.
	Status     int
	RetryAfter string
	Body       string
	// Hang keeps the call open until the client gives up or the server closes; nothing is done.
	Hang bool
	// Drop does what was asked and closes the connection without an answer.
	Drop bool
}

// Inject adds a fault. Faults are used up in the order of their injection.
func (s *Server) Inject(f Fault) {
	f.Times = max(f.Times, 1)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.faults = append(s.faults, &f)
}

// fault takes one use of the first fault that fits, or nil.
func (s *Server) fault(method string) *Fault {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, f := range s.faults {
		if f.Method != "" && f.Method != method {
			continue
		}
		if f.Times--; f.Times == 0 {
			s.faults = append(s.faults[:i:i], s.faults[i+1:]...)
		}
		return f
	}
	return nil
}

// before answers in place of the method and reports whether it did.
func (f *Fault) before(w http.ResponseWriter, r *http.Request, closed <-chan struct{}) bool {
	switch {
	case f.Drop:
		return false
	case f.Hang:
		select {
		case <-r.Context().Done():
		case <-closed:
		}
	case f.Status != 0:
		if f.RetryAfter != "" {
			w.Header().Set("Retry-After", f.RetryAfter)
		}
		w.WriteHeader(f.Status)
		_, _ = w.Write([]byte(f.Body)) // A client that is gone does not want it.
	default:
		a := fail(f.Error, f.Messages...)
		if f.Needed != "" {
			a["needed"] = f.Needed
		}
		writeJSON(w, a)
	}
	return true
}

func (f *Fault) label() string {
	switch {
	case f.Hang:
		return "hang"
	case f.Status != 0:
		return strconv.Itoa(f.Status)
	default:
		return f.Error
	}
}

func dropConnection(w http.ResponseWriter) {
	h, ok := w.(http.Hijacker)
	if !ok {
		panic(http.ErrAbortHandler)
	}
	conn, _, err := h.Hijack()
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	_ = conn.Close() // That is the point.
}
