package preview

import (
	"bytes"
	"net/http"
	"path"
	"strconv"
	"strings"
	"time"

	"vllm-triage/notify/slack/fakeslack"
)

// Policy is the Content-Security-Policy under which the page works.
const Policy = "default-src 'none'; style-src 'self'; img-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

// Options say how a workspace is shown.
type Options struct {
	Channel  string         // The channel's id.
	Name     string         // The channel's name, without "#".
	Language string         // Empty is "en".
	Location *time.Location // Of the times; nil is UTC.
	Refresh  int            // Seconds between reloads; 0 does not reload.
}

// Handler serves a channel of a fake workspace: the page at /, its style sheet and the pictures below it.
func Handler(s *fakeslack.Server, o Options) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, _ *http.Request) {
		var b bytes.Buffer
		if err := Render(&b, Channel(s, o)); err != nil {
			http.Error(w, "the page could not be rendered", http.StatusInternalServerError)
			return
		}
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		_, _ = w.Write(b.Bytes()) // A reader who left does not want it.
	})
	mux.HandleFunc("GET /preview.css", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/css; charset=utf-8")
		_, _ = w.Write(Stylesheet())
	})
	mux.HandleFunc("GET /files/{name}", func(w http.ResponseWriter, r *http.Request) {
		name := r.PathValue("name")
		f, ok := s.FileByID(strings.TrimSuffix(name, path.Ext(name)))
		if !ok || f.MimeType != "image/png" {
			http.NotFound(w, r)
			return
		}
		w.Header().Set("Content-Type", "image/png")
		_, _ = w.Write(f.Content)
	})
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Content-Security-Policy", Policy)
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("Cache-Control", "no-store")
		mux.ServeHTTP(w, r)
	})
}

// Channel collects a channel's threads as a page.
func Channel(s *fakeslack.Server, o Options) Page {
	if o.Location == nil {
		o.Location = time.UTC
	}
	if o.Language == "" {
		o.Language = "en"
	}
	p := Page{
		Title: "#" + o.Name, Channel: o.Name, Language: o.Language, Stylesheet: "/preview.css", Refresh: o.Refresh,
	}
	for _, root := range s.Roots(o.Channel) {
		t := Thread{Root: post(root, o)}
		for _, reply := range s.Thread(o.Channel, root.TS) {
			t.Replies = append(t.Replies, post(reply, o))
		}
		p.Threads = append(p.Threads, t)
	}
	return p
}

func post(m fakeslack.Message, o Options) Post {
	author := "vllm-triage"
	if m.User != fakeslack.BotUser {
		author = m.User
	}
	p := Post{
		Author: author, Clock: clock(m.TS, o.Location), Text: m.Text, Blocks: m.Blocks, Edited: len(m.Edits) > 0,
		Broadcast: m.Broadcast,
	}
	for _, f := range m.Files {
		p.Pictures = append(p.Pictures, Picture{
			Address: "/files/" + f.ID + ".png", Title: unescape(f.Title), AltText: unescape(f.AltText),
		})
	}
	return p
}

func clock(ts string, zone *time.Location) string {
	seconds, _, _ := strings.Cut(ts, ".")
	n, err := strconv.ParseInt(seconds, 10, 64)
	if err != nil {
		return ""
	}
	return time.Unix(n, 0).In(zone).Format("15:04")
}
