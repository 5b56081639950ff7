// Package storetest makes databases for tests: SQLite files and schemas in a PostgreSQL server of its own.
package storetest

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	_ "github.com/jackc/pgx/v5/stdlib" // The driver "pgx".
	"github.com/stretchr/testify/require"

	"vllm-triage/triage/store"
)

// RequirePostgres names the environment variable that, set to 1, makes a missing PostgreSQL fail tests instead of skipping
// them.
const RequirePostgres = "VLLM_TRIAGE_REQUIRE_POSTGRES"

// SQLite returns the address of a database that does not exist yet.
func SQLite(tb testing.TB) string {
	tb.Helper()
	return "sqlite:" + filepath.Join(tb.TempDir(), "store.db")
}

// Open opens a store that is closed at the end of the test.
func Open(tb testing.TB, address string) *store.Store {
	tb.Helper()
	s, err := store.Open(tb.Context(), address, store.Options{NoSync: true})
	require.NoError(tb, err)
	tb.Cleanup(func() { require.NoError(tb, s.Close()) })
	return s
}

// Engines are the engines that a test of the store runs on. Each gives the address of an empty database, or skips its test
// where the engine is not installed.
func Engines() map[string]func(testing.TB) string {
	return map[string]func(testing.TB) string{"sqlite": SQLite, "postgres": Postgres}
}

var schemas atomic.Int64

// Postgres returns the address of an empty schema. It skips the test where PostgreSQL is not installed.
func Postgres(tb testing.TB) string {
	tb.Helper()
	base, err := server()
	if errors.Is(err, errNotInstalled) {
		if os.Getenv(RequirePostgres) == "1" || os.Getenv("VLLM_TRIAGE_REQUIRE_TOOLS") == "1" {
			tb.Fatal(err)
		}
		tb.Skip(err)
	}
	require.NoError(tb, err)
	name := "t" + strconv.FormatInt(schemas.Add(1), 10)
	db, err := sql.Open("pgx", base.String())
	require.NoError(tb, err)
	defer db.Close() //nolint:errcheck // A failed close changes nothing.
	_, err = db.ExecContext(tb.Context(), "CREATE SCHEMA "+name)
	require.NoError(tb, err)
	u := *base
	q := u.Query()
	q.Set("search_path", name)
	u.RawQuery = q.Encode()
	return u.String()
}

var errNotInstalled = errors.New("PostgreSQL is not installed (/usr/lib/postgresql/*/bin)")

// server starts a cluster once for the test binary. Stop ends it.
var server = sync.OnceValues(start)

var running struct {
	sync.Mutex
	dir, ctl string
	as       *syscall.SysProcAttr
}

// Stop ends the server, if there is one. Call it from TestMain.
func Stop() {
	running.Lock()
	defer running.Unlock()
	if running.dir == "" {
		return
	}
	_ = run(running.as, running.dir, running.ctl, "stop", "-D", filepath.Join(running.dir, "data"), "-m", "immediate", "-w")
	_ = os.RemoveAll(running.dir)
	running.dir = ""
}

func start() (*url.URL, error) {
	found, err := filepath.Glob("/usr/lib/postgresql/*/bin/pg_ctl")
	if err != nil || len(found) == 0 {
		return nil, errNotInstalled
	}
	bin := filepath.Dir(slices.Max(found))
	dir, err := os.MkdirTemp("", "vllm-triage-pg") // It outlives the test that asks first.
	if err != nil {
		return nil, err
	}
	as, err := unprivileged(dir)
	if err != nil {
		return nil, err
	}
	data := filepath.Join(dir, "data")
	if err := run(as, dir, filepath.Join(bin, "initdb"),
		"-D", data, "-U", "triage", "-A", "trust", "-N", "-E", "UTF8", "--locale=C"); err != nil {
		return nil, err
	}
	// Only a socket: no port to clash over. The durability of a test's data is not tested here.
	options := fmt.Sprintf("-c listen_addresses='' -c unix_socket_directories='%s' -c fsync=off -c max_connections=200 "+
		"-c shared_buffers=16MB", dir)
	ctl := filepath.Join(bin, "pg_ctl")
	if err := run(as, dir, ctl, "start", "-D", data, "-w", "-t", "60", "-l", filepath.Join(dir, "log"), "-o", options); err != nil {
		return nil, err
	}
	running.Lock()
	defer running.Unlock()
	running.dir, running.ctl, running.as = dir, ctl, as
	return &url.URL{
		Scheme: "postgres", User: url.User("triage"), Path: "/postgres",
		RawQuery: url.Values{"host": {dir}, "sslmode": {"disable"}}.Encode(),
	}, nil
}

// unprivileged makes dir belong to the user postgres when the test runs as root, which PostgreSQL refuses to.
func unprivileged(dir string) (*syscall.SysProcAttr, error) {
	if os.Getuid() != 0 {
		return nil, nil
	}
	u, err := user.Lookup("postgres")
	if err != nil {
		return nil, err
	}
	uid, err := strconv.ParseUint(u.Uid, 10, 32)
	if err != nil {
		return nil, err
	}
	gid, err := strconv.ParseUint(u.Gid, 10, 32)
	if err != nil {
		return nil, err
	}
	if err := os.Chown(dir, int(uid), int(gid)); err != nil {
		return nil, err
	}
	return &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}}, nil
}

func run(as *syscall.SysProcAttr, dir, name string, args ...string) error {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, name, args...) //nolint:gosec // The tools of PostgreSQL.
	cmd.SysProcAttr, cmd.Dir = as, dir
	cmd.Env = []string{"LC_ALL=C", "PATH=/usr/bin:/bin"}
	// A file, not a pipe: the server inherits it and would keep a pipe open.
	out, err := os.CreateTemp(dir, "out")
	if err != nil {
		return err
	}
	defer out.Close() //nolint:errcheck // A failed close changes nothing.
	cmd.Stdout, cmd.Stderr = out, out
	if err := cmd.Run(); err != nil {
		text, _ := os.ReadFile(out.Name())
		return fmt.Errorf("%s: %w: %s", filepath.Base(name), err, bytes.TrimSpace(text))
	}
	return nil
}
