package runbook

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"
)

// Book is a validated set of pages. It is read-only and safe for concurrent use.
type Book struct {
	pages   map[string]map[string]*Page // By id and language.
	signals []string
}

// Load reads the pages <lang>/<id>.md, the metrics that their queries may ask for (metrics/*.txt) and the signals that
// their numbers may be of (signals/*.txt), and validates them all. All mistakes are reported at once, each with its file.
// Files elsewhere are left alone.
func Load(fsys fs.FS) (*Book, error) {
	files, err := read(fsys)
	if err != nil {
		return nil, err
	}
	b := &Book{pages: map[string]map[string]*Page{}}
	v := newVocabulary()
	var errs []error
	each := func(folder, ext string, use func(name string, data []byte) error) {
		for _, name := range slices.Sorted(maps.Keys(files)) {
			if path.Dir(name) == folder && path.Ext(name) == ext {
				if err := use(strings.TrimSuffix(path.Base(name), ext), files[name]); err != nil {
					errs = append(errs, fmt.Errorf("%s: %w", name, err))
				}
			}
		}
	}
	each("metrics", ".txt", func(_ string, data []byte) error { return v.addMetrics(data) })
	each("signals", ".txt", func(_ string, data []byte) error { return v.addSignals(data) })
	for _, lang := range Languages() {
		each(lang, ".md", func(id string, data []byte) error {
			p, err := parsePage(lang, id, data, v)
			if err != nil {
				return err
			}
			if b.pages[id] == nil {
				b.pages[id] = map[string]*Page{}
			}
			b.pages[id][lang] = p
			return nil
		})
	}
	b.signals = slices.Sorted(maps.Keys(v.signals))
	if len(errs) == 0 { // A page that does not load would be reported as missing too.
		errs = append(errs, b.complete(), b.translations(), b.links())
	}
	if err := errors.Join(errs...); err != nil {
		return nil, fmt.Errorf("load runbooks: %w", err)
	}
	return b, nil
}

// read fetches the files of the known folders.
func read(fsys fs.FS) (map[string][]byte, error) {
	files := map[string][]byte{}
	for _, folder := range append(Languages(), "metrics", "signals") {
		entries, err := fs.ReadDir(fsys, folder)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("read runbooks: %w", err)
		}
		for _, d := range entries {
			name := path.Join(folder, d.Name())
			if ext := path.Ext(name); ext != ".md" && ext != ".txt" {
				continue
			}
			data, err := fs.ReadFile(fsys, name)
			if err != nil {
				return nil, fmt.Errorf("read runbooks: %w", err)
			}
			files[name] = data
		}
	}
	return files, nil
}

// complete wants every required page in the fallback language.
func (b *Book) complete() error {
	var errs []error
	for _, k := range []Kind{Bottleneck, Trigger, General} {
		for _, id := range Required(k) {
			if b.pages[id][fallback] == nil {
				errs = append(errs, fmt.Errorf("%s/%s.md: the %s has no page", fallback, id, k))
			}
		}
	}
	return errors.Join(errs...)
}

// translations wants the same steps in all languages: what was done on one page counts on the other.
func (b *Book) translations() error {
	var errs []error
	for _, id := range b.IDs() {
		original := b.pages[id][fallback]
		for _, lang := range slices.Sorted(maps.Keys(b.pages[id])) {
			switch p := b.pages[id][lang]; {
			case original == nil:
				errs = append(errs, fmt.Errorf("%s/%s.md: there is no %s/%s.md", lang, id, fallback, id))
			case !slices.Equal(p.stepIDs(), original.stepIDs()):
				errs = append(errs, fmt.Errorf("%s/%s.md: steps are %q, in %s they are %q",
					lang, id, p.stepIDs(), fallback, original.stepIDs()))
			}
		}
	}
	return errors.Join(errs...)
}

// links wants every link to another page, or to an anchor, to lead somewhere.
func (b *Book) links() error {
	var errs []error
	for _, id := range b.IDs() {
		for _, lang := range slices.Sorted(maps.Keys(b.pages[id])) {
			p := b.pages[id][lang]
			for _, dest := range p.links() {
				target, anchor := p, strings.TrimPrefix(dest, "#")
				if page, ok := strings.CutPrefix(dest, linkScheme); ok {
					page, anchor, _ = strings.Cut(page, "#")
					target = b.pages[page][fallback]
				}
				if target == nil || anchor != "" && !slices.Contains(target.anchors(), anchor) {
					errs = append(errs, fmt.Errorf("%s/%s.md: link %q leads nowhere", lang, id, dest))
				}
			}
		}
	}
	return errors.Join(errs...)
}

// links lists the links of a page that stay inside the book.
func (p *Page) links() []string {
	out := slices.Concat(p.intro.links, p.outro.links)
	for _, s := range p.steps {
		out = slices.Concat(out, s.body.links, s.check.links)
	}
	return out
}

func (p *Page) anchors() []string {
	out := p.stepIDs()
	for _, s := range languages[p.Lang].sections {
		out = append(out, s.anchor)
	}
	return out
}

// Get returns the page of a cause in a language ("ko", "ko-KR"). Without one it is the English page with Asked set; false
// means that the id is unknown.
func (b *Book) Get(lang, id string) (*Page, bool) {
	byLang, ok := b.pages[id]
	if !ok {
		return nil, false
	}
	lang = baseLanguage(lang)
	if p, ok := byLang[lang]; ok {
		return p, true
	}
	p := *byLang[fallback]
	if lang != "" {
		p.Asked = clean(lang)
	}
	return &p, true
}

// IDs lists the pages, sorted.
func (b *Book) IDs() []string { return slices.Sorted(maps.Keys(b.pages)) }

// Of lists the pages of one kind, sorted.
func (b *Book) Of(k Kind) []string {
	return slices.DeleteFunc(b.IDs(), func(id string) bool { return kindOf(id) != k })
}

// Signals lists the signals whose numbers pages may show, sorted: what a Filling's Numbers are read for.
func (b *Book) Signals() []string { return slices.Clone(b.signals) }
