// Command licences prints the modules of a CycloneDX file with their licences, one a line and sorted, and fails when a
// module has none: somebody must then look. Used by `make sbom`.
package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
)

// component is the part of a CycloneDX component that names it and its licences. The licences that cyclonedx-gomod
// detects in a module's files are evidence, not declarations.
type component struct {
	Name     string   `json:"name"`
	Version  string   `json:"version"`
	Licences licences `json:"licenses"`
	Evidence struct {
		Licences licences `json:"licenses"`
	} `json:"evidence"`
}

type licences []struct {
	Licence struct {
		ID   string `json:"id"`
		Name string `json:"name"`
	} `json:"license"`
}

func main() {
	if err := run(os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "licences:", err)
		os.Exit(1)
	}
}

func run(args []string, out io.Writer) error {
	if len(args) != 1 {
		return errors.New("want one argument: a CycloneDX file in JSON")
	}
	raw, err := os.ReadFile(args[0]) //nolint:gosec // The argument is the file that the caller wants read.
	if err != nil {
		return fmt.Errorf("read bill of materials: %w", err)
	}
	var bill struct {
		Components []component `json:"components"`
	}
	if err := json.Unmarshal(raw, &bill); err != nil {
		return fmt.Errorf("parse bill of materials %s: %w", args[0], err)
	}
	var lines, unknown []string
	for _, c := range bill.Components {
		var ids []string
		for _, l := range append(c.Licences, c.Evidence.Licences...) {
			ids = append(ids, l.Licence.ID+l.Licence.Name)
		}
		if c.Name == "std" { // Go's standard library comes without a licence file in the module cache.
			ids = []string{"BSD-3-Clause"}
		}
		if len(ids) == 0 {
			unknown = append(unknown, c.Name)
		}
		lines = append(lines, fmt.Sprintf("%s %s %s", c.Name, c.Version, strings.Join(ids, ", ")))
	}
	if len(unknown) > 0 {
		return fmt.Errorf("no licence found for %s: look, then name it here", strings.Join(unknown, ", "))
	}
	slices.Sort(lines)
	fmt.Fprintln(out, strings.Join(lines, "\n"))
	return nil
}
