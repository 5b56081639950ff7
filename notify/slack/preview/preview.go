package preview

import (
	"embed"
	"encoding/json"
	"fmt"
	"html/template"
	"io"
)

// Page is a channel with its threads.
type Page struct {
	Title    string
	Channel  string
	Language string // Of the page itself, for example "en".
	Threads  []Thread
	// Stylesheet is the address of Stylesheet's content.
	Stylesheet string
	// Refresh reloads the page after so many seconds; 0 does not.
	Refresh int
}

// Thread is a message with its replies.
type Thread struct {
	Root    Post
	Replies []Post
}

// Post is one message.
type Post struct {
	Author string
	Clock  string
	Text   string          // Shown when there are no blocks, as mrkdwn.
	Blocks json.RawMessage // Block Kit.
	Edited bool
	// Broadcast marks a reply that is shown in the channel too.
	Broadcast bool
	Pictures  []Picture
}

// Picture is a file below a message.
type Picture struct {
	Address string
	Title   string
	AltText string
}

//go:embed page.html preview.css
var files embed.FS

var page = template.Must(template.New("page.html").Funcs(template.FuncMap{
	"blocks": parseBlocks,
	"mrkdwn": parseMrkdwn,
}).ParseFS(files, "page.html"))

// Render writes the page.
func Render(w io.Writer, p Page) error {
	if err := page.Execute(w, p); err != nil {
		return fmt.Errorf("render preview: %w", err)
	}
	return nil
}

// Stylesheet is the CSS that the page asks for. It follows the reader's light or dark preference.
func Stylesheet() []byte {
	b, err := files.ReadFile("preview.css")
	if err != nil {
		panic(err) // It is embedded.
	}
	return b
}
