package web

import (
	"bytes"
	"embed"
	"fmt"
	"html/template"
	"io"
	"strconv"
	"sync"
	"time"

	"vllm-triage/notify"
	"vllm-triage/notify/format"
	"vllm-triage/notify/locale"
)

//go:embed templates/*.html
var templateFiles embed.FS

// templates holds one set for each page; a test excludes that they are broken.
var templates = sync.OnceValue(func() map[string]*template.Template {
	out := map[string]*template.Template{}
	for _, name := range []string{"incident", "list", "runbook", "error"} {
		out[name] = template.Must(template.ParseFS(templateFiles,
			"templates/layout.html", "templates/parts.html", "templates/"+name+".html"))
	}
	return out
})

// page is what every template works on, beside what the page is about.
type page struct {
	Site
	Title string
	Nav   string // Which entry of the navigation is this page: "incidents", "runbooks" or "".
	Tone  string // The colour of the page's state: one of the tones.

	words words
	f     format.Formatter
	here  string // The address of this page, without its language.
	with  []string
}

func newPage(s Site, nav, here string, with ...string) page {
	language := s.language()
	s.User, s.Version = clean(s.User), clean(s.Version)
	return page{
		Site: s, Nav: nav, here: here, with: with,
		words: catalogues()[language],
		f:     format.New(language, s.Location, s.Now),
	}
}

// The tones of a state.
const (
	toneBad    = "bad"    // Fires, critical.
	toneWarn   = "warn"   // Fires.
	toneGood   = "good"   // Over.
	toneCalm   = "calm"   // Nothing to do.
	toneUnsure = "unsure" // Inconclusive.
)

// T is a text of the page. See words.text.
func (p page) T(key string, pairs ...string) string { return p.words.text(key, pairs...) }

// N is a text with a number in it. See words.count.
func (p page) N(key string, n int, pairs ...string) string { return p.words.count(key, n, pairs...) }

// Lang is the language of the page.
func (p page) Lang() string { return p.language() }

// Href is the address of a page of ours.
func (p page) Href(path string, pairs ...string) string { return p.link(path, pairs...) }

// Asset is the address of an asset.
func (p page) Asset(name string) string {
	return p.Prefix + AssetsPath + name + "?v=" + assetVersions()[name]
}

// Other is one more language that the page can be read in.
type Other struct{ Lang, Name, Href string }

// Others lists the languages, the page's own apart.
func (p page) Others() []Other {
	if p.here == "" {
		return nil
	}
	var out []Other
	for _, l := range locale.Languages() {
		if l != p.Lang() {
			c := locale.For(l)
			out = append(out, Other{Lang: l, Name: c.Text("name"), Href: p.granted(p.linkIn(l, p.here, p.with...))})
		}
	}
	return out
}

// moment is a point in time for people and for machines.
type moment struct{ Clock, Machine string }

// at is the time of day, with its date when it is not today; empty for the zero time.
func (p page) at(t time.Time) moment {
	if t.IsZero() {
		return moment{}
	}
	return moment{Clock: p.f.Clock(t), Machine: t.UTC().Format(time.RFC3339)}
}

// since is how long ago a time is; empty below a second.
func (p page) since(t time.Time) string {
	if t.IsZero() || p.Now.Sub(t) < time.Second {
		return ""
	}
	return p.f.Duration(p.Now.Sub(t))
}

// percent writes a probability. No data makes a cause impossible, so there is no zero.
func (p page) percent(probability float64) string {
	const least = 0.01
	if probability < least {
		return "<" + p.f.Value(least, "ratio")
	}
	return p.f.Value(probability, "ratio")
}

// How long texts that came from outside may be, in characters.
const (
	maxName = 200
	maxText = 2000
)

func clean(s string) string { return notify.Clean(s, maxName) }

// render executes a page's template and writes the result at once: a page that fails half way writes nothing.
func render(w io.Writer, name string, data any) error {
	var b bytes.Buffer
	if err := templates()[name].ExecuteTemplate(&b, "layout", data); err != nil {
		return fmt.Errorf("render page %s: %w", name, err)
	}
	if _, err := w.Write(b.Bytes()); err != nil {
		return fmt.Errorf("write page %s: %w", name, err)
	}
	return nil
}

// Can says whether the reader may send forms.
func (p page) Can() bool { return p.CSRF != "" }

// MaxComment is the longest comment.
func (page) MaxComment() int { return MaxComment }

// Zone is the time zone of the page's clocks.
func (p page) Zone() string { return p.f.Zone(p.Now) }

// LangParam is what a form that goes to an address of ours with its method GET must send along; it may be empty.
func (p page) LangParam() string {
	if p.Lang() == locale.For(p.Default).Language() {
		return ""
	}
	return p.Lang()
}

// bar is the length of a bar, 0 to 100, for an SVG attribute: styles in the page are forbidden.
func bar(share float64) string {
	if !(share > 0) { // NaN too.
		return "0"
	}
	return strconv.FormatFloat(min(share, 1)*100, 'f', 0, 64)
}
