package store

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"strconv"
	"strings"
)

//go:embed migrations/*.sql
var migrationFiles embed.FS

// migration is one step of the schema. Steps are only ever added, and each leaves what older binaries read in place, so that
// old and new replicas run side by side during an upgrade. A step that old binaries cannot live with says so in its first
// line: "-- breaks".
type migration struct {
	version int
	breaks  bool
	text    string
}

func migrations(files fs.FS) ([]migration, error) {
	names, err := fs.Glob(files, "migrations/*.sql")
	if err != nil {
		return nil, err
	}
	out := make([]migration, 0, len(names))
	for i, name := range names {
		text, err := fs.ReadFile(files, name)
		if err != nil {
			return nil, err
		}
		number, _, _ := strings.Cut(strings.TrimPrefix(name, "migrations/"), "_")
		version, err := strconv.Atoi(number)
		if err != nil || version != i+1 {
			return nil, fmt.Errorf("migration %s: must be number %d", name, i+1)
		}
		out = append(out, migration{version, strings.HasPrefix(string(text), "-- breaks\n"), string(text)})
	}
	return out, nil
}

// migrate brings the schema up to date, under a lock: replicas that start together wait for the first.
func (s *Store) migrate(ctx context.Context) error {
	steps, err := migrations(migrationFiles)
	if err != nil {
		return err
	}
	return s.migrateWith(ctx, steps)
}

func (s *Store) migrateWith(ctx context.Context, steps []migration) error {
	return s.do(ctx, "migrate", func(ctx context.Context, t *tx) error {
		if err := t.lock(ctx, "vllm-triage migrate"); err != nil {
			return err
		}
		if err := t.exec(ctx, `CREATE TABLE IF NOT EXISTS schema_version
			(id INTEGER PRIMARY KEY, version BIGINT NOT NULL, readable_by BIGINT NOT NULL)`); err != nil {
			return err
		}
		var version, readableBy int
		if _, err := t.one(ctx, []any{&version, &readableBy},
			`SELECT version, readable_by FROM schema_version WHERE id = 1`); err != nil {
			return err
		}
		latest := len(steps)
		if readableBy > latest {
			return fmt.Errorf("the database has schema %d, which this version (schema %d) cannot work with: "+
				"run the newer binary, or restore a backup made before the upgrade", version, latest)
		}
		if version >= latest {
			return nil
		}
		for _, m := range steps[version:] {
			if m.breaks {
				readableBy = m.version
			}
			if err := s.apply(ctx, t, m); err != nil {
				return fmt.Errorf("migration %d: %w", m.version, err)
			}
		}
		return t.exec(ctx, `INSERT INTO schema_version (id, version, readable_by) VALUES (1, ?, ?)
			ON CONFLICT (id) DO UPDATE SET version = excluded.version, readable_by = excluded.readable_by`, latest, readableBy)
	})
}

func (s *Store) apply(ctx context.Context, t *tx, m migration) error {
	text := m.text
	for name, with := range s.d.types {
		text = strings.ReplaceAll(text, "{{"+name+"}}", with)
	}
	var lines []string
	for line := range strings.Lines(text) {
		if !strings.HasPrefix(line, "--") {
			lines = append(lines, line)
		}
	}
	for statement := range strings.SplitSeq(strings.Join(lines, ""), ";\n") {
		if strings.TrimSpace(statement) == "" {
			continue
		}
		if strings.Contains(statement, "?") {
			return errors.New("statements must not hold question marks")
		}
		if err := t.exec(ctx, strings.TrimSuffix(strings.TrimSpace(statement), ";")); err != nil {
			return err
		}
	}
	return nil
}
