package web_test

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/net/html"

	"vllm-triage/cmd/vllm-triage/server/web"
)

// element is a start tag of a page with what surrounds it.
type element struct {
	name    string
	attr    map[string]string
	parents []string
	text    string // Of an element of worded.
}

// worded are the elements that must say something.
var worded = []string{"a", "button", "summary", "label", "dt", "h1", "h2", "h3", "h4"}

var voidElements = []string{"meta", "link", "input", "img", "br", "hr"}

// parse reads a page and fails where its tags do not nest. A page's SVG counts like everything else.
func parse(t testing.TB, page string) []*element {
	t.Helper()
	var all, open []*element
	z := html.NewTokenizer(strings.NewReader(page))
	for {
		switch z.Next() {
		case html.ErrorToken:
			require.Empty(t, open, "elements that do not end")
			return all
		case html.StartTagToken, html.SelfClosingTagToken:
			tok := z.Token()
			e := &element{name: tok.Data, attr: map[string]string{}}
			for _, a := range tok.Attr {
				if _, twice := e.attr[a.Key]; twice {
					t.Fatalf("%s stands twice in %s", a.Key, tok)
				}
				e.attr[a.Key] = a.Val
			}
			for _, p := range open {
				e.parents = append(e.parents, p.name)
			}
			all = append(all, e)
			if tok.Type == html.StartTagToken && !slices.Contains(voidElements, tok.Data) {
				open = append(open, e)
			}
		case html.EndTagToken:
			name := z.Token().Data
			if len(open) == 0 || open[len(open)-1].name != name {
				t.Fatalf("</%s> does not end the element that is open", name)
			}
			open = open[:len(open)-1]
		case html.TextToken:
			data := z.Token().Data
			for _, e := range open {
				if slices.Contains(worded, e.name) {
					e.text += data
				}
			}
		case html.CommentToken, html.DoctypeToken:
		}
	}
}

func TestPagesAreSound(t *testing.T) {
	t.Parallel()
	for _, s := range samples(t) {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			page := s.page
			require.Equal(t, page, text(t, s.write), "the same view gives the same bytes")
			require.True(t, strings.HasPrefix(page, "<!DOCTYPE html>\n"))
			require.NotContains(t, page, "ZgotmplZ", "the template engine refused a value")
			require.NotContains(t, page, "<no value>")
			all := parse(t, page)
			checkPolicy(t, all)
			checkStructure(t, all)
			checkReferences(t, all)
		})
	}
}

// hrefPattern is what a link may lead to.
var hrefPattern = regexp.MustCompile(`^(https?://|/[^/]|#)`)

// forbidden are elements that a page must not have.
var forbidden = []string{"script", "style", "iframe", "object", "embed", "base", "video", "audio"}

// checkPolicy wants nothing that the Content-Security-Policy forbids.
func checkPolicy(t *testing.T, all []*element) {
	t.Helper()
	for _, e := range all {
		if slices.Contains(forbidden, e.name) {
			t.Fatalf("a page has the element %s", e.name)
		}
		for name, value := range e.attr {
			bad := name == "style" || strings.HasPrefix(name, "on") || name == "srcdoc"
			switch name {
			case "src", "action":
				bad = !strings.HasPrefix(value, "/") || strings.HasPrefix(value, "//")
			case "href":
				bad = !hrefPattern.MatchString(value) || e.name == "link" && !strings.HasPrefix(value, web.AssetsPath) ||
					strings.HasPrefix(value, "http") && e.attr["rel"] != "noopener noreferrer"
			}
			if bad {
				t.Fatalf("%s has %s=%q", e.name, name, value)
			}
		}
	}
}

// checkStructure wants what assistive technology goes by.
func checkStructure(t *testing.T, all []*element) {
	t.Helper()
	count := map[string]int{}
	level := 0
	for _, e := range all {
		count[e.name]++
		switch e.name {
		case "h1", "h2", "h3", "h4":
			n := int(e.name[1] - '0')
			require.LessOrEqual(t, n, level+1, "heading %q skips a level", e.text)
			require.NotEmpty(t, strings.TrimSpace(e.text))
			level = n
		case "img":
			require.NotEmpty(t, e.attr["alt"])
		case "svg":
			require.Equal(t, "true", e.attr["aria-hidden"])
		case "nav", "aside":
			require.NotEmpty(t, e.attr["aria-label"], "landmarks of one kind are told apart by name")
		case "section":
			require.NotEmpty(t, e.attr["aria-labelledby"]+e.attr["aria-label"])
		case "a", "button", "summary", "label", "dt":
			if strings.TrimSpace(e.text) == "" {
				t.Fatalf("%s %v says nothing", e.name, e.attr)
			}
		case "th":
			if !slices.Contains(e.parents, "article") { // Markdown tables have plain heads.
				require.Contains(t, []string{"col", "row"}, e.attr["scope"])
			}
		case "form":
			require.Contains(t, []string{"post", "get"}, e.attr["method"])
		case "html":
			require.Contains(t, languages, e.attr["lang"])
		}
	}
	for _, once := range []string{"html", "head", "title", "body", "main", "h1"} {
		require.Equal(t, 1, count[once], once)
	}
}

// checkReferences wants ids to be unique and everything that names one to find it.
func checkReferences(t *testing.T, all []*element) {
	t.Helper()
	ids := map[string]bool{}
	for _, e := range all {
		if id, ok := e.attr["id"]; ok {
			require.NotEmpty(t, id)
			if ids[id] {
				t.Fatalf("id %q stands twice", id)
			}
			ids[id] = true
		}
	}
	labels := map[string]bool{}
	for _, e := range all {
		for _, name := range []string{"aria-labelledby", "for"} {
			if id := e.attr[name]; id != "" && !ids[id] {
				t.Fatalf("%s=%q finds nothing", name, id)
			}
		}
		if e.name == "label" {
			labels[e.attr["for"]] = true
		}
		if anchor, ok := strings.CutPrefix(e.attr["href"], "#"); ok {
			if !ids[anchor] {
				t.Fatalf("#%s leads nowhere", anchor)
			}
		}
	}
	for _, e := range all {
		if e.name == "select" || e.name == "textarea" {
			require.True(t, labels[e.attr["id"]], "%s has no label", e.name)
		}
	}
}

func TestFormsCarryTheToken(t *testing.T) {
	t.Parallel()
	forms := 0
	for _, s := range samples(t) {
		page := s.page
		posts := strings.Count(page, `method="post"`)
		require.Equal(t, posts, strings.Count(page, `<input type="hidden" name="csrf" value="token-1">`), s.name)
		if strings.Contains(s.name, "read-only") || strings.HasPrefix(s.name, "list") || strings.HasPrefix(s.name, "error") {
			require.Zero(t, posts, s.name)
		}
		forms += posts
	}
	require.Positive(t, forms)
}

func TestPolicyIsStrict(t *testing.T) {
	t.Parallel()
	var names []string
	for directive := range strings.SplitSeq(web.CSP, "; ") {
		name, sources, _ := strings.Cut(directive, " ")
		names = append(names, name)
		require.Contains(t, []string{"'self'", "'none'"}, sources, directive)
	}
	require.Equal(t, []string{"default-src", "style-src", "img-src", "form-action", "frame-ancestors", "base-uri"}, names)
}
