package preview_test

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"vllm-triage/notify"
	"vllm-triage/notify/locale"
	"vllm-triage/notify/notifytest"
	"vllm-triage/notify/slack"
	"vllm-triage/notify/slack/fakeslack"
	"vllm-triage/notify/slack/preview"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func post(t *testing.T, fake *fakeslack.Server, name, language string) {
	t.Helper()
	api := httptest.NewServer(fake)
	transport := &http.Transport{}
	defer api.Close()
	defer transport.CloseIdleConnections()
	n, err := slack.New(slack.Config{
		Token: func() (string, error) { return "xoxb-1", nil }, APIURL: api.URL + "/api/", Pace: time.Millisecond,
		Transport: transport, View: slack.View{Interactive: true, Charts: slack.NativeCharts},
	})
	require.NoError(t, err)
	c := notifytest.Named(name, language)
	m := notify.NewMessage(c.Report, c.Options)
	root, err := n.Post(t.Context(), fakeslack.DefaultChannel, m)
	require.NoError(t, err)
	_, err = n.Reply(t.Context(), root, m.As(notify.KindDetails))
	require.NoError(t, err)
	require.NoError(t, n.Update(t.Context(), root, m))
	require.NoError(t, n.Illustrate(t.Context(), root, notify.Picture{
		PNG: []byte("\x89PNG"), Filename: "a.png", Title: "Charts <b>", AltText: "alt & text",
	}))
}

func get(t *testing.T, h http.Handler, path string) *httptest.ResponseRecorder {
	t.Helper()
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, http.NoBody))
	return w
}

func TestPageShowsTheConversation(t *testing.T) {
	t.Parallel()
	fake := fakeslack.New(fakeslack.Options{Now: notifytest.Now})
	post(t, fake, "kv-longer-outputs", "en")
	h := preview.Handler(fake, preview.Options{
		Channel: fakeslack.DefaultChannel, Name: "vllm-alerts", Location: notifytest.Seoul(), Refresh: 3,
	})
	w := get(t, h, "/")
	require.Equal(t, http.StatusOK, w.Code)
	require.Equal(t, preview.Policy, w.Header().Get("Content-Security-Policy"))
	html := w.Body.String()
	for _, want := range []string{
		"# vllm-alerts", "KV cache full · demo (llm)", `<span class="dot orange" role="img" aria-label="🟠"></span>`,
		"<b>Outputs got longer</b>", "<code>--max-num-seqs</code>", ">14:09<", "(edited)", "<th><p>Signal</p></th>",
		`<span class="button ">Right</span>`, `href="https://triage.example.org/incidents/demo-9f3a1c"`,
		"<polyline points=", `alt="alt &amp; text"`, "Charts &lt;b&gt;", `http-equiv="refresh" content="3"`,
		`title="Silence 1 hour, Silence 4 hours, Silence 24 hours"`,
	} {
		require.Contains(t, html, want)
	}
	require.NotContains(t, html, "<script")
	require.NotContains(t, html, "style=")
	require.NotContains(t, html, "<form")

	css := get(t, h, "/preview.css")
	require.Equal(t, "text/css; charset=utf-8", css.Header().Get("Content-Type"))
	require.Contains(t, css.Body.String(), "prefers-color-scheme: dark")
	picture := fake.Thread(fakeslack.DefaultChannel, fake.Roots(fakeslack.DefaultChannel)[0].TS)[1].Files[0]
	png := get(t, h, "/files/"+picture.ID+".png")
	require.Equal(t, "image/png", png.Header().Get("Content-Type"))
	require.Equal(t, "\x89PNG", png.Body.String())
	require.Equal(t, http.StatusNotFound, get(t, h, "/files/none.png").Code)
	require.Equal(t, http.StatusNotFound, get(t, h, "/other").Code)
}

// TestHostileTextStaysText renders every case; no text of a label may become an element, a link or a script.
func TestHostileTextStaysText(t *testing.T) {
	t.Parallel()
	for _, language := range locale.Languages() {
		fake := fakeslack.New(fakeslack.Options{Now: notifytest.Now})
		post(t, fake, "hostile", language)
		html := get(t, preview.Handler(fake, preview.Options{Channel: fakeslack.DefaultChannel}), "/").Body.String()
		require.NotContains(t, html, "<script")
		require.NotContains(t, html, `href="https://evil`)
		require.Contains(t, html, "&lt;script&gt;alert(1)&lt;/script&gt;")
		require.Equal(t, 1, strings.Count(html, `class="mention"`), "the configured group and nobody else")
	}
}

func TestMarkup(t *testing.T) {
	t.Parallel()
	render := func(text string) string {
		block, err := json.Marshal([]any{map[string]any{"type": "section", "text": map[string]any{"type": "mrkdwn", "text": text}}})
		require.NoError(t, err)
		var b bytes.Buffer
		require.NoError(t, preview.Render(&b, preview.Page{Threads: []preview.Thread{{Root: preview.Post{Blocks: block}}}}))
		_, rest, _ := strings.Cut(b.String(), "</div>\n<p>")
		body, _, _ := strings.Cut(rest, "</p>")
		return body
	}
	for in, want := range map[string]string{
		"plain":                            "plain",
		"*bold* and _it_ ~no~":             "<b>bold</b> and <i>it</i> <s>no</s>",
		"snake_case_name a*b*c":            "snake_case_name a*b*c",
		"`code *x*`":                       "<code>code *x*</code>",
		"```pre\nsecond```":                "<code>pre</code><br><code>second</code>",
		"<https://x.org/a?b=1&amp;c=2|go>": `<a href="https://x.org/a?b=1&amp;c=2" rel="noopener noreferrer">go</a>`,
		"<javascript:alert(1)|go>":         `<a href="#ZgotmplZ" rel="noopener noreferrer">go</a>`,
		"<!here> <@U1> <!subteam^S1>":      `<span class="mention">@here</span> <span class="mention">@U1</span> <span class="mention">@S1</span>`,
		"&lt;!here&gt; &amp;lt;":           "&lt;!here&gt; &amp;lt;",
		"a\nb":                             "a<br>b",
		"<!date^1^{time}|14:02>":           "14:02",
		"*open":                            "*open",
		"<open":                            "&lt;open",
	} {
		require.Equal(t, want, render(in), in)
	}
}

func FuzzRender(f *testing.F) {
	f.Add("*a* <https://x|y>", `[{"type":"section","text":{"type":"mrkdwn","text":"*x*"}}]`)
	f.Add("<", `[{"type":"table","rows":[[null],[{"type":"rich_text","elements":[{}]}]]},{"type":"data_visualization","chart":{"series":[{"data":[1]}]}}]`)
	f.Fuzz(func(t *testing.T, text, blocks string) {
		var b bytes.Buffer
		require.NoError(t, preview.Render(&b, preview.Page{Threads: []preview.Thread{{
			Root: preview.Post{Text: text}, Replies: []preview.Post{{Blocks: json.RawMessage(blocks), Author: text}},
		}}}))
		require.NotContains(t, strings.ToLower(b.String()), "<script")
		require.NotContains(t, strings.ToLower(b.String()), `href="javascript`)
	})
}
