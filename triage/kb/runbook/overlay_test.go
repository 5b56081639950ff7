package runbook_test

import (
	"io/fs"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"

	"vllm-triage/triage/kb/runbook"
)

func TestOverlayIsAFileSystem(t *testing.T) {
	t.Parallel()
	fsys := runbook.Overlay(fstest.MapFS{
		"en/a.md": {Data: []byte("base a")}, "en/b.md": {Data: []byte("base b")}, "ko/a.md": {Data: []byte("base ko a")},
		"ko/b.md": {Data: []byte("base ko b")}, "metrics/x.txt": {Data: []byte("x")},
	}, fstest.MapFS{
		"en/b.md": {Data: []byte("site b")}, "en/c.md": {Data: []byte("site c")}, "notes/n.md": {Data: []byte("n")},
	})
	require.NoError(t, fstest.TestFS(fsys, "en/a.md", "en/b.md", "en/c.md", "ko/a.md", "metrics/x.txt", "notes/n.md"))
	data, err := fs.ReadFile(fsys, "en/b.md")
	require.NoError(t, err)
	require.Equal(t, "site b", string(data))
	_, err = fs.Stat(fsys, "ko/b.md")
	require.ErrorIs(t, err, fs.ErrNotExist, "the translation of a replaced page tells of other steps")
	_, err = fs.ReadDir(fsys, "nowhere")
	require.ErrorIs(t, err, fs.ErrNotExist)
}

func TestOverlayOfNothing(t *testing.T) {
	t.Parallel()
	base := runbook.Embedded()
	require.Equal(t, base, runbook.Overlay(base, nil))
	b, err := runbook.Load(runbook.Overlay(base, fstest.MapFS{}))
	require.NoError(t, err)
	require.Equal(t, runbook.IDs(), b.IDs())
}

func TestOverlayReplacesAndAdds(t *testing.T) {
	t.Parallel()
	own := strings.ReplaceAll(page, "id: healthy", "id: our_gateway")
	own = strings.Replace(own, "vllm:prompt_tokens_total{{{matchers}}}", "gateway_rejects_total", 1)
	own = strings.Replace(own, `"kv_usage"`, `"gateway_queue"`, 1)
	b, err := runbook.Load(runbook.Overlay(runbook.Embedded(), fstest.MapFS{
		"en/healthy.md":     {Data: []byte(page)},
		"en/our_gateway.md": {Data: []byte(own)},
		"metrics/site.txt":  {Data: []byte("gateway_rejects_total counter target # ours\n")},
		"signals/site.txt":  {Data: []byte("gateway_queue\n")},
	}))
	require.NoError(t, err)
	require.Equal(t, []string{"our_gateway"}, b.Of(runbook.Site))
	require.Contains(t, b.Signals(), "gateway_queue")

	p, ok := b.Get("ko", "healthy")
	require.True(t, ok)
	require.Equal(t, "Title", p.Title)
	require.Equal(t, "ko", p.Asked, "the shipped Korean page has other steps")
	p, ok = b.Get("en", "our_gateway")
	require.True(t, ok)
	require.Equal(t, runbook.Site, p.Kind)
}

func TestOverlayTranslationsMustHaveTheSameSteps(t *testing.T) {
	t.Parallel()
	korean := strings.NewReplacer(
		"What it means", "무슨 뜻인가", "How to confirm", "확인 방법", "Steps", "조치", "How you know it is over", "해소 판단",
		"What not to do", "하지 말 것", "Prevention", "재발 방지", "Check:", "확인:",
	).Replace(page)
	load := func(ko string) error {
		_, err := runbook.Load(runbook.Overlay(runbook.Embedded(), fstest.MapFS{
			"en/healthy.md": {Data: []byte(page)}, "ko/healthy.md": {Data: []byte(ko)},
		}))
		return err
	}
	require.NoError(t, load(korean))
	require.ErrorContains(t, load(strings.Replace(korean, "{#do-it}", "{#do-that}", 1)),
		`ko/healthy.md: steps are ["do-that"], in en they are ["do-it"]`)

	_, err := runbook.Load(runbook.Overlay(runbook.Embedded(), fstest.MapFS{
		"ko/ours.md": {Data: []byte(strings.Replace(korean, "id: healthy", "id: ours", 1))},
	}))
	require.ErrorContains(t, err, "ko/ours.md: there is no en/ours.md")
}
