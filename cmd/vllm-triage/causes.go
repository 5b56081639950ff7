package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"text/tabwriter"

	"vllm-triage/triage/kb"
)

// loadKnowledge loads the embedded knowledge base with an operator's directory laid over it.
func loadKnowledge(dir string) (*kb.Base, error) {
	if dir == "" {
		return kb.Load()
	}
	info, err := os.Stat(dir)
	if err != nil {
		return nil, fmt.Errorf("read knowledge directory: %w", err)
	}
	if !info.IsDir() {
		return nil, fmt.Errorf("read knowledge directory: %s is not a directory", dir)
	}
	return kb.Load(os.DirFS(dir))
}

func runCauses(_ context.Context, env environment) error {
	fs := flags(env, "causes", "", "List the causes of the knowledge base.")
	dir := fs.String("knowledge", "", "directory with causes and signals that override or add to the built-in ones")
	if _, err := parse(fs, env.args); err != nil {
		return err
	}
	base, err := loadKnowledge(*dir)
	if err != nil {
		return err
	}
	w := tabwriter.NewWriter(env.stdout, 0, 4, 2, ' ', 0)
	for _, axis := range []kb.Axis{kb.Bottleneck, kb.Trigger} {
		fmt.Fprintf(w, "%sS\t\n", strings.ToUpper(string(axis)))
		for _, c := range base.OnAxis(axis) {
			fmt.Fprintf(w, "  %s\t%s\n", c.ID, c.Title)
		}
	}
	return w.Flush()
}

func runExplain(_ context.Context, env environment) error {
	fs := flags(env, "explain", "CAUSE", "Print what a cause is, what speaks for and against it, and what to do.")
	dir := fs.String("knowledge", "", "directory with causes and signals that override or add to the built-in ones")
	args, err := parse(fs, env.args)
	if err != nil {
		return err
	}
	if len(args) != 1 {
		return usagef("name one cause; \"vllm-triage causes\" lists them")
	}
	base, err := loadKnowledge(*dir)
	if err != nil {
		return err
	}
	c, ok := base.Cause(args[0])
	if !ok {
		if near := nearest(args[0], base); near != "" {
			return usagef("there is no cause %q; did you mean %q?", args[0], near)
		}
		return usagef("there is no cause %q; \"vllm-triage causes\" lists them", args[0])
	}
	explain(env.stdout, base, c)
	return nil
}

func explain(w io.Writer, base *kb.Base, c kb.Cause) {
	fmt.Fprintf(w, "%s (%s, %s)\n%s\n\n%s\n", c.Title, c.ID, c.Axis, strings.Repeat("=", len(c.Title)), strings.TrimSpace(c.Mechanism))
	if len(c.Needs) > 0 {
		fmt.Fprintf(w, "\nNot checked without: %s\n", strings.Join(c.Needs, ", "))
	}
	for _, r := range c.Requires {
		fmt.Fprintf(w, "Ruled out unless: %s %s%s\n", r.Signal, r.Feature, bounds(r))
	}
	if len(c.Evidence) > 0 {
		fmt.Fprint(w, "\nEvidence (weight in log-odds for / against):\n")
	}
	for _, p := range c.Evidence {
		title := p.Signal
		if s, ok := base.Signal(p.Signal); ok {
			title = s.Title
		}
		key := " "
		if p.Key {
			key = "*"
		}
		fmt.Fprintf(w, " %s %+4.1f / %+4.1f  %s: %s, no at %g, yes at %g\n", key, p.For, p.Against, title, p.Feature, *p.No, *p.Yes)
	}
	if len(c.Parents) > 0 {
		fmt.Fprintf(w, "\nA consequence of: %s, when one of these is the likelier cause\n", strings.Join(c.Parents, ", "))
	}
	if len(c.Actions) > 0 {
		fmt.Fprint(w, "\nNext steps:\n")
	}
	for _, a := range c.Actions {
		fmt.Fprintf(w, "  - %s\n", a.Text)
		if a.Option != "" {
			fmt.Fprintf(w, "    option: %s\n", a.Option)
		}
		if a.Cost != "" {
			fmt.Fprintf(w, "    cost: %s\n", a.Cost)
		}
	}
	if len(c.Sources) > 0 {
		fmt.Fprintf(w, "\nSources:\n  %s\n", strings.Join(c.Sources, "\n  "))
	}
}

func bounds(c kb.Condition) string {
	s := ""
	if c.Min != nil {
		s += fmt.Sprintf(" ≥ %g", *c.Min)
	}
	if c.Max != nil {
		s += fmt.Sprintf(" ≤ %g", *c.Max)
	}
	return s
}

// nearest is the cause whose id shares the longest beginning or contains the word asked for.
func nearest(asked string, base *kb.Base) string {
	best, most := "", 2
	for _, c := range base.Causes {
		n := 0
		for n < len(asked) && n < len(c.ID) && asked[n] == c.ID[n] {
			n++
		}
		if strings.Contains(c.ID, asked) {
			n += len(asked)
		}
		if n > most {
			best, most = c.ID, n
		}
	}
	return best
}
