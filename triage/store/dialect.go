package store

import (
	"strconv"
	"strings"
	"sync"
)

// dialect is what differs between the engines.
type dialect struct {
	name string
	// types replaces {{serial}} and {{blob}} in migrations.
	types map[string]string
	// skipLocked makes a claim pass over rows that others are claiming.
	skipLocked string
	numbered   bool     // Placeholders are $1, $2 … instead of ?.
	rebound    sync.Map // Rewritten queries.
}

func newSQLiteDialect() *dialect {
	return &dialect{name: "sqlite", types: map[string]string{
		"serial": "INTEGER PRIMARY KEY AUTOINCREMENT", "blob": "BLOB",
	}}
}

func newPostgresDialect() *dialect {
	return &dialect{name: "postgres", skipLocked: " FOR UPDATE SKIP LOCKED", numbered: true, types: map[string]string{
		"serial": "BIGSERIAL PRIMARY KEY", "blob": "BYTEA",
	}}
}

// bind rewrites the placeholders of a query. Queries are constants of this package without question marks in strings.
func (d *dialect) bind(q string) string {
	if !d.numbered {
		return q
	}
	if s, ok := d.rebound.Load(q); ok {
		return s.(string) //nolint:errcheck,forcetypeassert // Only strings are stored.
	}
	var b strings.Builder
	n := 0
	for part := range strings.SplitSeq(q, "?") {
		if n > 0 {
			b.WriteString("$" + strconv.Itoa(n))
		}
		b.WriteString(part)
		n++
	}
	d.rebound.Store(q, b.String())
	return b.String()
}
