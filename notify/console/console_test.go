package console_test

import (
	"bytes"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"vllm-triage/notify"
	"vllm-triage/notify/console"
	"vllm-triage/notify/locale"
	"vllm-triage/notify/notifytest"
)

var update = flag.Bool("update", false, "rewrite golden files")

func TestGolden(t *testing.T) {
	t.Parallel()
	for _, language := range locale.Languages() {
		for _, c := range notifytest.Cases(language) {
			t.Run(c.Name+"."+language, func(t *testing.T) {
				t.Parallel()
				m := notify.NewMessage(c.Report, c.Options)
				got := console.Render(m, false) + "\n" + console.Render(m.As(notify.KindDetails), false) +
					"\n" + console.Render(m.As(notify.KindChange), false)
				path := filepath.Join("testdata", c.Name+"."+language+".txt")
				if *update {
					require.NoError(t, os.MkdirAll("testdata", 0o755))
					require.NoError(t, os.WriteFile(path, []byte(got), 0o600))
				}
				want, err := os.ReadFile(path)
				require.NoError(t, err)
				require.Empty(t, cmp.Diff(string(want), got))
			})
		}
	}
}

func TestNoLineIsTooWideAndNothingControlsTheTerminal(t *testing.T) {
	t.Parallel()
	for _, c := range notifytest.Cases("en") {
		m := notify.NewMessage(c.Report, c.Options)
		m.Links = notify.Links{} // Addresses stay whole.
		for _, k := range []notify.Kind{notify.KindCard, notify.KindDetails, notify.KindChange} {
			text := console.Render(m.As(k), false)
			for line := range strings.Lines(text) {
				line = strings.TrimSuffix(line, "\n")
				require.LessOrEqual(t, len([]rune(line)), console.Width, "%s: %s", c.Name, line)
				require.NotContains(t, line, "\x1b")
				require.NotContains(t, line, "\x00")
			}
		}
	}
}

func TestColoursOnlyWhereWanted(t *testing.T) {
	t.Parallel()
	c := notifytest.Named("kv-longer-outputs", "en")
	m := notify.NewMessage(c.Report, c.Options)
	var plain, forced bytes.Buffer
	_, err := console.New(&plain, console.Auto).Post(t.Context(), "#alerts", m)
	require.NoError(t, err)
	require.NotContains(t, plain.String(), "\x1b[", "a buffer is no terminal")
	ref, err := console.New(&forced, console.Always).Post(t.Context(), "#alerts", m)
	require.NoError(t, err)
	require.Contains(t, forced.String(), "\x1b[1;33m● KV cache full")
	require.Equal(t, notify.Ref{Channel: "#alerts", ID: "1"}, ref)
}

func TestConversation(t *testing.T) {
	t.Parallel()
	c := notifytest.Named("changed", "en")
	m := notify.NewMessage(c.Report, c.Options)
	var out bytes.Buffer
	n := console.New(&out, console.Never)
	require.Equal(t, "console", n.Name())
	ref, err := n.Post(t.Context(), "c", m)
	require.NoError(t, err)
	second, err := n.Reply(t.Context(), ref, m.As(notify.KindChange))
	require.NoError(t, err)
	require.Equal(t, "2", second.ID)
	require.NoError(t, n.Update(t.Context(), ref, m))
	_, err = n.Reply(t.Context(), ref, notify.NewNote("i", "en", "U1", "Jane marked it right"))
	require.NoError(t, err)
	require.Contains(t, out.String(), "Verdict changed: inconclusive → Prefill-bound (high confidence)")
	require.Contains(t, out.String(), "Jane marked it right")
}

type broken struct{}

func (broken) Write([]byte) (int, error) { return 0, errors.New("pipe is gone") }

func TestWriteErrorIsClassed(t *testing.T) {
	t.Parallel()
	_, err := console.New(broken{}, console.Never).Post(t.Context(), "c", notify.Message{})
	var failure *notify.Error
	require.ErrorAs(t, err, &failure)
	require.Equal(t, notify.Unavailable, failure.Reason)
}
