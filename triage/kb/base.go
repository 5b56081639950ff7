package kb

import (
	"cmp"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"
)

//go:embed signals.yaml versions.yaml causes examples
var embedded embed.FS

var idPattern = regexp.MustCompile(`^[a-z][a-z0-9_]*$`)

// Base is a loaded and validated knowledge base. It is read-only.
type Base struct {
	Signals  []Signal // In the order of the file.
	Causes   []Cause  // Sorted by id.
	Versions []Fingerprint
	// Hash names the content: the first 12 hex digits of the SHA-256 over all files.
	Hash string
	// Anchor lists the metrics that may tell which series, targets and scrapes belong to a scope, best first: of each vLLM
	// at least one exists, with model_name and one series for each engine.
	Anchor []string
	// Examples holds the series that examples build on, by file name without extension.
	Examples map[string]string

	signals map[string]int
	causes  map[string]int
}

// Default is the knowledge base of the binary. It panics when that is broken, which a test excludes.
func Default() *Base {
	b, err := Load()
	if err != nil {
		panic(fmt.Sprintf("embedded knowledge base: %v", err))
	}
	return b
}

// Load reads the embedded knowledge base and lays the given directories over it, later ones on top: a file of the same
// name replaces, a new one adds. All mistakes are reported at once, each with its file.
func Load(overrides ...fs.FS) (*Base, error) {
	files, err := collect(append([]fs.FS{embedded}, overrides...))
	if err != nil {
		return nil, err
	}
	b := &Base{signals: map[string]int{}, causes: map[string]int{}, Examples: map[string]string{}}
	var errs []error
	sum := sha256.New()
	for _, name := range slices.Sorted(maps.Keys(files)) {
		data := files[name]
		fmt.Fprintf(sum, "%s\x00%d\x00", name, len(data))
		sum.Write(data)
		if err := b.add(name, data); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", name, err))
		}
	}
	b.Hash = hex.EncodeToString(sum.Sum(nil)[:6])
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	if err := b.validate(); err != nil {
		return nil, err
	}
	return b, nil
}

// Signal returns the signal of that id.
func (b *Base) Signal(id string) (Signal, bool) {
	i, ok := b.signals[id]
	if !ok {
		return Signal{}, false
	}
	return b.Signals[i], true
}

// Cause returns the cause of that id.
func (b *Base) Cause(id string) (Cause, bool) {
	i, ok := b.causes[id]
	if !ok {
		return Cause{}, false
	}
	return b.Causes[i], true
}

// OnAxis lists the causes of one axis, sorted by id.
func (b *Base) OnAxis(a Axis) []Cause {
	var out []Cause
	for _, c := range b.Causes {
		if c.Axis == a {
			out = append(out, c)
		}
	}
	return out
}

func collect(layers []fs.FS) (map[string][]byte, error) {
	files := map[string][]byte{}
	for _, layer := range layers {
		err := fs.WalkDir(layer, ".", func(name string, d fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			known := name == "signals.yaml" || name == "versions.yaml" ||
				path.Dir(name) == "causes" && path.Ext(name) == ".yaml" ||
				path.Dir(name) == "examples" && path.Ext(name) == ".promql"
			if d.IsDir() || !known {
				return nil
			}
			data, err := fs.ReadFile(layer, name)
			if err != nil {
				return err
			}
			files[name] = data
			return nil
		})
		if err != nil {
			return nil, fmt.Errorf("read knowledge base: %w", err)
		}
	}
	return files, nil
}

func (b *Base) add(name string, data []byte) error {
	switch {
	case name == "signals.yaml":
		var doc struct {
			Schema  int      `yaml:"schema"`
			Anchor  []string `yaml:"anchor"`
			Signals []Signal `yaml:"signals"`
		}
		if err := decode(data, &doc); err != nil {
			return err
		}
		if doc.Schema != 1 {
			return fmt.Errorf("schema is %d, want 1", doc.Schema)
		}
		b.Anchor = doc.Anchor
		for _, s := range doc.Signals {
			s.Scope = cmp.Or(s.Scope, "model")
			if _, ok := b.signals[s.ID]; ok {
				return fmt.Errorf("signal %q stands twice", s.ID)
			}
			b.signals[s.ID] = len(b.Signals)
			b.Signals = append(b.Signals, s)
		}
	case name == "versions.yaml":
		var doc struct {
			Schema   int           `yaml:"schema"`
			Versions []Fingerprint `yaml:"versions"`
		}
		if err := decode(data, &doc); err != nil {
			return err
		}
		b.Versions = doc.Versions
	case path.Dir(name) == "examples":
		b.Examples[strings.TrimSuffix(path.Base(name), ".promql")] = string(data)
	default:
		var c Cause
		if err := decode(data, &c); err != nil {
			return err
		}
		if want := strings.TrimSuffix(path.Base(name), ".yaml"); c.ID != want {
			return fmt.Errorf("id %q does not match the file's name", c.ID)
		}
		c.File = name
		if err := c.compileAlerts(); err != nil {
			return err
		}
		b.Causes = append(b.Causes, c)
	}
	return nil
}

// decode is strict: unknown keys, a second document and an empty file are errors.
func decode(data []byte, v any) error {
	dec := yaml.NewDecoder(strings.NewReader(string(data)))
	dec.KnownFields(true)
	if err := dec.Decode(v); err != nil {
		if errors.Is(err, io.EOF) {
			return errors.New("file is empty")
		}
		return err
	}
	var more any
	if err := dec.Decode(&more); !errors.Is(err, io.EOF) {
		return errors.New("file holds a second YAML document")
	}
	return nil
}

func (b *Base) validate() error {
	slices.SortFunc(b.Causes, func(x, y Cause) int { return cmp.Compare(x.ID, y.ID) })
	for i, c := range b.Causes {
		b.causes[c.ID] = i
	}
	var errs []error
	if len(b.Anchor) == 0 {
		errs = append(errs, errors.New("signals.yaml: anchor is missing"))
	}
	for _, s := range b.Signals {
		errs = append(errs, s.validate())
		for _, id := range slices.Concat(s.Needs, s.BetterWith, s.operands(), s.SpareFor) {
			if _, ok := b.Signal(id); !ok {
				errs = append(errs, fmt.Errorf("signal %q: needs unknown signal %q", s.ID, id))
			}
		}
	}
	for _, c := range b.Causes {
		if err := c.validate(b); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", c.File, err))
		}
		for _, err := range slices.Concat(c.validateTexts(b), c.validateReferences(b)) {
			errs = append(errs, fmt.Errorf("%s: %w", c.File, err))
		}
		for _, id := range slices.Concat(c.Parents, slices.Sorted(maps.Keys(c.With))) {
			if _, ok := b.Cause(id); !ok {
				errs = append(errs, fmt.Errorf("%s: cause %q is unknown", c.File, id))
			}
		}
		for _, e := range c.Examples {
			if _, ok := b.Examples[e.Base]; !ok && e.Base != "" {
				errs = append(errs, fmt.Errorf("%s: example %q: base %q is unknown", c.File, e.Name, e.Base))
			}
		}
	}
	return errors.Join(errs...)
}

func (s Signal) operands() []string {
	var out []string
	if s.Ratio != nil {
		out = append(out, s.Ratio.Num, s.Ratio.Den)
	}
	for _, i := range s.Instead {
		out = append(out, i.Operands()...)
	}
	return out
}
