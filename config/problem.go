package config

import (
	"cmp"
	"errors"
	"slices"
	"strconv"
	"strings"
)

// Problem is one mistake in a configuration.
type Problem struct {
	Path string // The key, such as "routes[1].channel"; empty for the file as a whole.
	Line int    // In the file; 0 when the mistake is something that is not there.
	Text string
}

// Error implements error: "line 12: server.listen: …".
func (p *Problem) Error() string {
	var b strings.Builder
	if p.Line > 0 {
		b.WriteString("line " + strconv.Itoa(p.Line) + ": ")
	}
	if p.Path != "" {
		b.WriteString(p.Path + ": ")
	}
	return b.String() + p.Text
}

// problems collects mistakes together with where the keys stand in the file.
type problems struct {
	lines   positions
	list    []*Problem
	partial bool // Decoding broke off, so what seems to be missing may be there.
}

// add notes a mistake at a path; its line is that of the path or of the nearest key above it.
func (p *problems) add(path, text string) {
	p.list = append(p.list, &Problem{Path: path, Line: p.lines.line(path), Text: text})
}

// err joins what was collected, in the order of the file, or is nil.
func (p *problems) err() error {
	p.list = slices.DeleteFunc(p.list, p.repeated)
	slices.SortStableFunc(p.list, func(a, b *Problem) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Path, b.Path))
	})
	errs := make([]error, len(p.list))
	for i, x := range p.list {
		errs[i] = x
	}
	return errors.Join(errs...)
}

// repeated says whether the same was said of a key above: the library checks its part while it decodes, and so do we after.
func (p *problems) repeated(x *Problem) bool {
	return slices.ContainsFunc(p.list, func(o *Problem) bool {
		return o != nil && o.Text == x.Text && o.Path != "" && strings.HasPrefix(x.Path, o.Path+".")
	})
}
