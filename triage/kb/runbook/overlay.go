package runbook

import (
	"errors"
	"io"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"
)

// Overlay lays a site's own files over a base: a file of the same name replaces, a new one adds. Where the site has its
// own English page, the base's translations of it are hidden, since they would tell of other steps; the site may bring
// its own. A nil dir leaves the base.
func Overlay(base, dir fs.FS) fs.FS {
	if dir == nil {
		return base
	}
	return overlay{base: base, dir: dir}
}

type overlay struct{ base, dir fs.FS }

func has(fsys fs.FS, name string) bool {
	_, err := fs.Stat(fsys, name)
	return err == nil
}

// hides says whether a file of the base is a translation of a page that the site has written anew.
func (o overlay) hides(name string) bool {
	lang := path.Dir(name)
	if _, ok := languages[lang]; !ok || lang == fallback || path.Ext(name) != ".md" {
		return false
	}
	return has(o.dir, path.Join(fallback, path.Base(name))) && !has(o.dir, name)
}

// Open implements fs.FS.
func (o overlay) Open(name string) (fs.File, error) {
	if !fs.ValidPath(name) {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrInvalid}
	}
	if o.hides(name) {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
	}
	f, err := o.dir.Open(name)
	if errors.Is(err, fs.ErrNotExist) {
		f, err = o.base.Open(name)
	}
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err != nil || !info.IsDir() {
		return f, err
	}
	entries, err := o.ReadDir(name)
	return &directory{File: f, entries: entries}, err
}

// directory is an open folder with the entries of both layers.
type directory struct {
	fs.File
	entries []fs.DirEntry
}

// ReadDir implements fs.ReadDirFile.
func (d *directory) ReadDir(n int) ([]fs.DirEntry, error) {
	if n <= 0 {
		n = len(d.entries)
	} else if len(d.entries) == 0 {
		return nil, io.EOF
	}
	n = min(n, len(d.entries))
	out := d.entries[:n]
	d.entries = d.entries[n:]
	return out, nil
}

// ReadDir implements fs.ReadDirFS.
func (o overlay) ReadDir(name string) ([]fs.DirEntry, error) {
	merged := map[string]fs.DirEntry{}
	missing := 0
	for _, layer := range []fs.FS{o.base, o.dir} {
		entries, err := fs.ReadDir(layer, name)
		if errors.Is(err, fs.ErrNotExist) {
			if missing++; missing == 2 {
				return nil, err
			}
			continue
		}
		if err != nil {
			return nil, err
		}
		for _, d := range entries {
			merged[d.Name()] = d
		}
	}
	maps.DeleteFunc(merged, func(file string, _ fs.DirEntry) bool { return o.hides(path.Join(name, file)) })
	return slices.SortedFunc(maps.Values(merged), func(a, b fs.DirEntry) int {
		return strings.Compare(a.Name(), b.Name())
	}), nil
}
