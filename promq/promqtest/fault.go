package promqtest

import (
	"cmp"
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"strings"
)

// Fault is what a request meets instead of, or on top of, its answer.
type Fault struct {
	// Status, if set, is answered with Body and nothing else. An empty body becomes the error that Prometheus sends with that
	// status.
	Status int
	// Body goes with Status.
	Body string
	// Header goes with Status.
	Header http.Header
	// Hang holds the request until its client gives up.
	Hang bool
	// Abort breaks the connection without an answer.
	Abort bool
	// Drop empties the result, as if nothing matched.
	Drop bool
	// Partial marks the answer as incomplete the way VictoriaMetrics does.
	Partial bool
	// Warnings are added to the answer.
	Warnings []string
}

func (f *Fault) serve(w http.ResponseWriter, r *http.Request, inner http.Handler) {
	switch {
	case f.Hang:
		<-r.Context().Done()
		return
	case f.Abort:
		panic(http.ErrAbortHandler)
	case f.Status != 0:
		maps.Copy(w.Header(), f.Header)
		w.WriteHeader(f.Status)
		_, _ = io.WriteString(w, cmp.Or(f.Body, defaultBody(f.Status)))
		return
	}
	rec := &recorder{header: http.Header{}, status: http.StatusOK}
	inner.ServeHTTP(rec, r)
	body := f.edit([]byte(rec.body.String()))
	maps.Copy(w.Header(), rec.header)
	w.WriteHeader(rec.status)
	_, _ = w.Write(body)
}

// edit changes the envelope of an answer; an answer that is no envelope stays as it is.
func (f *Fault) edit(body []byte) []byte {
	var envelope struct {
		Status    string          `json:"status"`
		IsPartial bool            `json:"isPartial,omitempty"`
		Data      json.RawMessage `json:"data,omitempty"`
		ErrorType string          `json:"errorType,omitempty"`
		Error     string          `json:"error,omitempty"`
		Warnings  []string        `json:"warnings,omitempty"`
		Infos     []string        `json:"infos,omitempty"`
	}
	if err := json.Unmarshal(body, &envelope); err != nil {
		return body
	}
	envelope.IsPartial = f.Partial
	envelope.Warnings = append(envelope.Warnings, f.Warnings...)
	if f.Drop && envelope.Status == "success" {
		envelope.Data = emptied(envelope.Data)
	}
	out, err := json.Marshal(envelope)
	if err != nil {
		return body
	}
	return out
}

// emptied is the data of the same type without content.
func emptied(data json.RawMessage) json.RawMessage {
	var result struct {
		ResultType string `json:"resultType"`
	}
	if err := json.Unmarshal(data, &result); err != nil || result.ResultType == "" {
		return json.RawMessage(`[]`)
	}
	if result.ResultType == "scalar" || result.ResultType == "string" {
		result.ResultType = "vector" // Those two always have a value.
	}
	return json.RawMessage(`{"resultType":"` + result.ResultType + `","result":[]}`)
}

func defaultBody(status int) string {
	typ := map[int]string{
		http.StatusBadRequest:          "bad_data",
		http.StatusUnprocessableEntity: "execution",
	}[status]
	return `{"status":"error","errorType":"` + cmp.Or(typ, "internal") + `","error":"injected fault"}`
}

func compareRequests(a, b Request) int {
	return cmp.Or(strings.Compare(a.Path, b.Path), strings.Compare(a.Query, b.Query))
}

// recorder keeps an answer to be edited.
type recorder struct {
	header http.Header
	status int
	body   strings.Builder
}

func (r *recorder) Header() http.Header { return r.header }

func (r *recorder) WriteHeader(status int) { r.status = status }

func (r *recorder) Write(p []byte) (int, error) { return r.body.Write(p) }
