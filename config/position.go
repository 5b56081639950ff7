package config

import (
	"strconv"
	"strings"

	"go.yaml.in/yaml/v4"
)

// positions knows where each key of a document stands.
type positions struct {
	lines  map[string]int    // By path.
	keys   map[[2]int]string // Paths by line and column of the key.
	values map[[2]int]string // The same of the value; a mapping begins where its first key does.
}

// maxNodes bounds the walk over a document whose aliases would multiply.
const maxNodes = 100_000

func positionsOf(doc *yaml.Node) positions {
	p := positions{lines: map[string]int{}, keys: map[[2]int]string{}, values: map[[2]int]string{}}
	left := maxNodes
	var walk func(n *yaml.Node, path string)
	walk = func(n *yaml.Node, path string) {
		left--
		if left < 0 {
			return
		}
		if at := [2]int{n.Line, n.Column}; p.values[at] == "" {
			p.values[at] = path
		}
		if _, known := p.lines[path]; !known && path != "" {
			p.lines[path] = n.Line
		}
		switch n.Kind {
		case yaml.DocumentNode:
			for _, c := range n.Content {
				walk(c, path)
			}
		case yaml.MappingNode:
			for i := 0; i+1 < len(n.Content); i += 2 {
				key := n.Content[i]
				below := strings.TrimPrefix(path+"."+key.Value, ".")
				p.keys[[2]int{key.Line, key.Column}] = below
				p.lines[below] = key.Line
				walk(n.Content[i+1], below)
			}
		case yaml.SequenceNode:
			for i, c := range n.Content {
				walk(c, path+"["+strconv.Itoa(i)+"]")
			}
		default: // Scalars have nothing below; what an alias stands for is noted where it is written.
		}
	}
	walk(doc, "")
	return p
}

// line is where a path, or the nearest one above it, stands; 0 if nothing of it does.
func (p positions) line(path string) int {
	for path != "" {
		if n, ok := p.lines[path]; ok {
			return n
		}
		path = path[:max(strings.LastIndexAny(path, ".["), 0)]
	}
	return 0
}
