package runbook

import (
	"bytes"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/text"
)

// markdown renders pages. Raw HTML stays off, and tables carry no style attributes, so that a strict
// Content-Security-Policy holds.
var markdown = goldmark.New(
	goldmark.WithExtensions(extension.NewTable(extension.WithTableCellAlignMethod(extension.TableCellAlignNone))),
	goldmark.WithParserOptions(parser.WithHeadingAttribute()),
)

// linkScheme marks links to other pages: runbook:<id> or runbook:<id>#<anchor>.
const linkScheme = "runbook:"

// fenceLanguages are the languages of code blocks.
var fenceLanguages = []string{"promql", "sh", "yaml", "text", "json"}

// render makes HTML of Markdown; links to other pages get their address.
func render(src string, link func(id string) string) (string, error) {
	source := []byte(src)
	doc := markdown.Parser().Parse(text.NewReader(source))
	walk(doc, func(n ast.Node) {
		l, ok := n.(*ast.Link)
		if !ok {
			return
		}
		dest := string(l.Destination)
		if page, ok := strings.CutPrefix(dest, linkScheme); ok {
			id, anchor, _ := strings.Cut(page, "#")
			dest = link(id)
			if anchor != "" {
				dest += "#" + anchor
			}
			l.Destination = []byte(dest)
		} else if !strings.HasPrefix(dest, "#") {
			l.SetAttributeString("rel", []byte("noopener noreferrer"))
		}
	})
	var out bytes.Buffer
	if err := markdown.Renderer().Render(&out, source, doc); err != nil {
		return "", fmt.Errorf("render markdown: %w", err)
	}
	return out.String(), nil
}

func walk(doc ast.Node, visit func(ast.Node)) {
	// The walker returns only the visitor's errors, of which there are none.
	_ = ast.Walk(doc, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		if entering {
			visit(n)
		}
		return ast.WalkContinue, nil
	})
}

// lint finds what must not stand in a page's Markdown, and lists the links that stay inside the book. The text is an
// expansion, its values not yet filled in.
func lint(e *expansion, v *vocabulary) (links []string, err error) {
	source := []byte(e.text.String())
	pc := parser.NewContext()
	doc := markdown.Parser().Parse(text.NewReader(source), parser.WithContext(pc))
	var errs []error
	bad := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	if len(pc.References()) > 0 {
		bad("link references are not supported: write [text](address)")
	}
	walk(doc, func(n ast.Node) {
		switch n := n.(type) {
		case *ast.HTMLBlock, *ast.RawHTML:
			bad("raw HTML is not supported")
		case *ast.Image:
			bad("images are not supported")
		case *ast.AutoLink:
			bad("write a link as [text](address): %s", n.URL(source))
		case *ast.CodeBlock:
			bad("indented code: use a fence")
		case *ast.FencedCodeBlock:
			errs = append(errs, e.lintFence(n, source, v))
		case *ast.Link:
			dest := string(n.Destination)
			if inside(dest) {
				links = append(links, dest)
			}
			errs = append(errs, lintLink(dest))
			if strings.Contains(string(n.Title), holderOpen) {
				bad("a placeholder stands in a link's title")
			}
		case *ast.Text:
			e.held(string(n.Segment.Value(source)), func(f field) {
				if f.name == "matchers" {
					bad("{{matchers}} stands outside a promql fence")
				}
			})
		}
	})
	return links, errors.Join(errs...)
}

// inside says whether a link stays inside the book; where it leads is checked once all pages are read.
func inside(dest string) bool {
	return strings.HasPrefix(dest, linkScheme) || strings.HasPrefix(dest, "#")
}

func (e *expansion) lintFence(n *ast.FencedCodeBlock, source []byte, v *vocabulary) error {
	lang := string(n.Language(source))
	if !slices.Contains(fenceLanguages, lang) {
		return fmt.Errorf("code fence language %q is not one of %s", lang, strings.Join(fenceLanguages, ", "))
	}
	var code strings.Builder
	for i := range n.Lines().Len() {
		line := n.Lines().At(i)
		code.Write(line.Value(source))
	}
	var errs []error
	e.held(code.String(), func(f field) {
		if lang != "promql" || f.name != "matchers" {
			errs = append(errs, fmt.Errorf("%s stands in a %s fence", f, lang))
		}
	})
	if lang == "promql" && len(errs) == 0 {
		query, err := e.fill(code.String(), escapeNothing)
		if err == nil {
			err = v.checkQuery(query)
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("promql fence %q: %w", excerpt(query), err))
		}
	}
	return errors.Join(errs...)
}

// held calls visit for the placeholders whose place holders stand in s.
func (e *expansion) held(s string, visit func(field)) {
	for _, m := range holderPattern.FindAllStringSubmatch(s, -1) {
		var n int
		if _, err := fmt.Sscanf(m[1], "%d", &n); err == nil && n < len(e.fields) {
			visit(e.fields[n])
		}
	}
}

func lintLink(dest string) error {
	if strings.Contains(dest, holderOpen) {
		return errors.New("a placeholder stands in a link's address")
	}
	if inside(dest) {
		return nil
	}
	u, err := url.Parse(dest)
	if err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http" {
		return fmt.Errorf("link %q is not http, https, runbook:<id> or #<anchor>", dest)
	}
	return nil
}

// plain is the text of Markdown without its marks.
func plain(src string) string {
	source := []byte(src)
	var b strings.Builder
	walk(markdown.Parser().Parse(text.NewReader(source)), func(n ast.Node) {
		if t, ok := n.(*ast.Text); ok {
			b.Write(t.Segment.Value(source))
			if t.SoftLineBreak() || t.HardLineBreak() {
				b.WriteByte(' ')
			}
		}
	})
	return strings.TrimSpace(b.String())
}
