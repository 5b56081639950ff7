package slack_test

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"vllm-triage/notify"
	"vllm-triage/notify/notifytest"
	"vllm-triage/notify/slack"
	"vllm-triage/notify/slack/fakeslack"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const token = "xoxb-secret-token-of-the-test"

// workspace is a fake Slack and a notifier that posts to it without pauses.
type workspace struct {
	fake *fakeslack.Server
	n    *slack.Notifier
	url  string
}

func newWorkspace(t *testing.T, o fakeslack.Options, change ...func(*slack.Config)) workspace {
	t.Helper()
	o.Token = token
	fake := fakeslack.New(o)
	server := httptest.NewServer(fake)
	client := &http.Transport{}
	t.Cleanup(func() {
		fake.Close()
		server.Close()
		client.CloseIdleConnections()
	})
	c := slack.Config{
		Token:  func() (string, error) { return token, nil },
		APIURL: server.URL + "/api/", Timeout: 5 * time.Second, Pace: time.Millisecond, Transport: client,
		View: slack.View{Interactive: true},
	}
	for _, f := range change {
		f(&c)
	}
	n, err := slack.New(c)
	require.NoError(t, err)
	return workspace{fake: fake, n: n, url: server.URL}
}

func sample(name string) notify.Message {
	c := notifytest.Named(name, "en")
	return notify.NewMessage(c.Report, c.Options)
}

func failureOf(t *testing.T, err error) *notify.Error {
	t.Helper()
	require.Error(t, err)
	var failure *notify.Error
	require.ErrorAs(t, err, &failure)
	require.NotContains(t, err.Error(), token, "secrets never print")
	return failure
}

const channel = fakeslack.DefaultChannel

func TestAConversation(t *testing.T) {
	t.Parallel()
	w := newWorkspace(t, fakeslack.Options{}, func(c *slack.Config) { c.Broadcast = true })
	ctx := t.Context()
	require.Equal(t, "slack", w.n.Name())

	m := sample("kv-longer-outputs")
	root, err := w.n.Post(ctx, "#vllm-alerts", m)
	require.NoError(t, err)
	require.Equal(t, channel, root.Channel, "the id that the post returned, not the name")
	details, err := w.n.Reply(ctx, root, m.As(notify.KindDetails))
	require.NoError(t, err)
	end := sample("resolved")
	require.NoError(t, w.n.Update(ctx, root, end))
	require.NoError(t, w.n.Update(ctx, details, end.As(notify.KindDetails)))
	_, err = w.n.Reply(ctx, root, end.As(notify.KindResolved))
	require.NoError(t, err)

	roots := w.fake.Roots(channel)
	require.Len(t, roots, 1)
	require.Contains(t, roots[0].Text, "Resolved: KV cache full")
	require.Len(t, roots[0].Edits, 1)
	require.Contains(t, roots[0].Edits[0].Text, "KV cache full")
	require.False(t, roots[0].Unfurl, "previews of links are switched off")
	require.Equal(t, "vllm_triage", roots[0].Metadata.EventType)
	require.Equal(t, map[string]any{"incident_id": "demo-9f3a1c", "kind": "card"}, roots[0].Metadata.EventPayload)
	thread := w.fake.Thread(channel, root.ID)
	require.Len(t, thread, 2)
	require.Equal(t, "details", thread[0].Kind())
	require.Len(t, thread[0].Edits, 1)
	require.Equal(t, "resolved", thread[1].Kind())
	require.True(t, thread[1].Broadcast)
	require.False(t, thread[0].Broadcast)
	require.Empty(t, w.fake.Violations())
}

// TestFailures injects one failure into a post and looks at what the deliverer is told.
func TestFailures(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name  string
		fault fakeslack.Fault
		want  notify.Error // Reason, Retryable, Maybe and After.
		hint  string
	}{
		{
			"429 with Retry-After",
			fakeslack.Fault{Status: 429, RetryAfter: "7"},
			notify.Error{Reason: notify.RateLimited, Retryable: true, After: 7 * time.Second},
			"",
		},
		{
			"429 without Retry-After",
			fakeslack.Fault{Status: 429},
			notify.Error{Reason: notify.RateLimited, Retryable: true, After: 30 * time.Second},
			"",
		},
		{
			"429 with nonsense",
			fakeslack.Fault{Status: 429, RetryAfter: "soon"},
			notify.Error{Reason: notify.RateLimited, Retryable: true, After: 30 * time.Second},
			"",
		},
		{
			"429 with a fraction",
			fakeslack.Fault{Status: 429, RetryAfter: "1.5"},
			notify.Error{Reason: notify.RateLimited, Retryable: true, After: 2 * time.Second},
			"",
		},
		{
			"429 of the plan",
			fakeslack.Fault{Status: 429, Body: `{"ok":false,"error":"message_limit_exceeded"}`},
			notify.Error{Reason: notify.RateLimited},
			"plan",
		},
		{
			"ratelimited",
			fakeslack.Fault{Error: "ratelimited"},
			notify.Error{Reason: notify.RateLimited, Retryable: true, After: 30 * time.Second},
			"",
		},
		{"not_in_channel", fakeslack.Fault{Error: "not_in_channel"}, notify.Error{Reason: notify.ChannelGone}, "/invite @vllm-triage"},
		{"channel_not_found", fakeslack.Fault{Error: "channel_not_found"}, notify.Error{Reason: notify.ChannelGone}, "check the channel's id"},
		{"is_archived", fakeslack.Fault{Error: "is_archived"}, notify.Error{Reason: notify.ChannelGone}, "unarchive"},
		{"invalid_auth", fakeslack.Fault{Error: "invalid_auth"}, notify.Error{Reason: notify.Auth}, "token is wrong"},
		{"token_revoked", fakeslack.Fault{Error: "token_revoked"}, notify.Error{Reason: notify.Auth}, "reinstall"},
		{"account_inactive", fakeslack.Fault{Error: "account_inactive"}, notify.Error{Reason: notify.Auth}, "reinstall"},
		{"missing_scope", fakeslack.Fault{Error: "missing_scope", Needed: "chat:write"}, notify.Error{Reason: notify.Auth}, "scope chat:write"},
		{"503", fakeslack.Fault{Status: 503}, notify.Error{Reason: notify.Unavailable, Retryable: true}, ""},
		{"502", fakeslack.Fault{Status: 502, Body: "<html>"}, notify.Error{Reason: notify.Unavailable, Retryable: true, Maybe: true}, ""},
		{"internal_error", fakeslack.Fault{Error: "internal_error"}, notify.Error{Reason: notify.Unavailable, Retryable: true, Maybe: true}, ""},
		{"dropped answer", fakeslack.Fault{Drop: true}, notify.Error{Reason: notify.Unavailable, Retryable: true, Maybe: true}, ""},
		{"login page", fakeslack.Fault{Status: 302}, notify.Error{Reason: notify.Auth}, "proxy"},
		{"unknown code", fakeslack.Fault{Error: "something_new"}, notify.Error{Reason: notify.OtherReason}, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			w := newWorkspace(t, fakeslack.Options{})
			w.fake.Inject(tt.fault)
			_, err := w.n.Post(t.Context(), channel, sample("kv-longer-outputs"))
			failure := failureOf(t, err)
			require.Equal(t, tt.want.Reason, failure.Reason, err)
			require.Equal(t, tt.want.Retryable, failure.Retryable, err)
			require.Equal(t, tt.want.Maybe, failure.Maybe, err)
			require.Equal(t, tt.want.After, failure.After, err)
			require.Contains(t, failure.Hint, tt.hint)
		})
	}
}

func TestTimeOutMayHaveDelivered(t *testing.T) {
	t.Parallel()
	w := newWorkspace(t, fakeslack.Options{}, func(c *slack.Config) { c.Timeout = 100 * time.Millisecond })
	w.fake.Inject(fakeslack.Fault{Hang: true})
	_, err := w.n.Post(t.Context(), channel, sample("healthy"))
	failure := failureOf(t, err)
	require.Equal(t, notify.TimedOut, failure.Reason)
	require.True(t, failure.Retryable)
	require.True(t, failure.Maybe)

	// An edit can be repeated without harm.
	ref, err := w.n.Post(t.Context(), channel, sample("healthy"))
	require.NoError(t, err)
	w.fake.Inject(fakeslack.Fault{Hang: true})
	failure = failureOf(t, w.n.Update(t.Context(), ref, sample("healthy")))
	require.Equal(t, notify.TimedOut, failure.Reason)
	require.False(t, failure.Maybe)
}

func TestNobodyListens(t *testing.T) {
	t.Parallel()
	var lc net.ListenConfig
	l, err := lc.Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	address := l.Addr().String()
	require.NoError(t, l.Close())
	n, err := slack.New(slack.Config{
		Token: func() (string, error) { return token, nil }, APIURL: "http://" + address + "/api", Timeout: time.Second,
	})
	require.NoError(t, err)
	_, err = n.Post(t.Context(), channel, sample("healthy"))
	failure := failureOf(t, err)
	require.Equal(t, notify.Unavailable, failure.Reason)
	require.True(t, failure.Retryable)
	require.False(t, failure.Maybe, "nothing was sent")
}

func TestAnAnswerThatIsLostIsFoundAgain(t *testing.T) {
	t.Parallel()
	w := newWorkspace(t, fakeslack.Options{})
	ctx := t.Context()
	for range 250 { // More than a page of other talk.
		w.fake.Say(channel, "U1", "hello")
	}
	w.fake.Inject(fakeslack.Fault{Method: "chat.postMessage", Drop: true})
	m := sample("kv-longer-outputs")
	_, err := w.n.Post(ctx, channel, m)
	require.True(t, failureOf(t, err).Maybe)
	for range 250 {
		w.fake.Say(channel, "U1", "hello again")
	}

	root, found, err := w.n.FindPosted(ctx, channel, m.IncidentID)
	require.NoError(t, err)
	require.True(t, found)
	var card fakeslack.Message
	for _, x := range w.fake.Roots(channel) {
		if x.Kind() == "card" {
			card = x
		}
	}
	require.Equal(t, notify.Ref{Channel: channel, ID: card.TS}, root)
	_, found, err = w.n.FindPosted(ctx, channel, "another incident")
	require.NoError(t, err)
	require.False(t, found)

	// Replies of one kind are told apart by their part.
	refs := map[string]notify.Ref{}
	for _, part := range []string{"details", "note-1", "note-2"} {
		_, found, err = w.n.FindReply(ctx, root, m.IncidentID, part)
		require.NoError(t, err)
		require.False(t, found, part)
		reply := m.As(notify.KindDetails)
		if part != "details" {
			reply = notify.NewNote(m.IncidentID, "en", "", "the same line")
		}
		reply.Part = part
		refs[part], err = w.n.Reply(ctx, root, reply)
		require.NoError(t, err)
	}
	for part, want := range refs {
		again, found, err := w.n.FindReply(ctx, root, m.IncidentID, part)
		require.NoError(t, err)
		require.True(t, found)
		require.Equal(t, want, again, part)
	}
}

func TestFindingNeedsAScopeAndAnID(t *testing.T) {
	t.Parallel()
	w := newWorkspace(t, fakeslack.Options{Scopes: []string{"chat:write"}})
	_, _, err := w.n.FindPosted(t.Context(), channel, "i")
	failure := failureOf(t, err)
	require.Equal(t, notify.Auth, failure.Reason)
	require.Contains(t, failure.Hint, "channels:history")

	w = newWorkspace(t, fakeslack.Options{})
	_, _, err = w.n.FindPosted(t.Context(), "#vllm-alerts", "i")
	require.Equal(t, notify.ChannelGone, failureOf(t, err).Reason)
	_, _, err = w.n.FindReply(t.Context(), notify.Ref{Channel: channel, ID: "1.000000"}, "i", "details")
	require.Equal(t, notify.MessageGone, failureOf(t, err).Reason)
}

func TestDeletedRootsAreGone(t *testing.T) {
	t.Parallel()
	w := newWorkspace(t, fakeslack.Options{})
	ctx := t.Context()
	m := sample("kv-longer-outputs")
	root, err := w.n.Post(ctx, channel, m)
	require.NoError(t, err)
	require.True(t, w.fake.Delete(channel, root.ID))
	require.Equal(t, notify.MessageGone, failureOf(t, w.n.Update(ctx, root, m)).Reason)

	// Slack would put the reply into the channel and call it a success.
	_, err = w.n.Reply(ctx, root, m.As(notify.KindDetails))
	require.Equal(t, notify.MessageGone, failureOf(t, err).Reason)
	require.Empty(t, w.fake.Roots(channel), "the stray reply was taken back")

	theirs := w.fake.Say(channel, "U1", "not ours")
	failure := failureOf(t, w.n.Update(ctx, notify.Ref{Channel: channel, ID: theirs}, m))
	require.Equal(t, notify.MessageGone, failure.Reason)
	require.False(t, failure.Retryable)
	_, err = w.n.Reply(ctx, notify.Ref{Channel: channel, ID: "no ts"}, m)
	require.Equal(t, notify.MessageGone, failureOf(t, err).Reason)
}

func TestRefusedBlocksGoOutAsText(t *testing.T) {
	t.Parallel()
	for _, code := range []string{"invalid_blocks", "msg_blocks_too_long", "msg_too_long", "invalid_metadata_format"} {
		t.Run(code, func(t *testing.T) {
			t.Parallel()
			var told []string
			w := newWorkspace(t, fakeslack.Options{}, func(c *slack.Config) {
				c.OnFallback = func(k notify.Kind, err error) { told = append(told, string(k)+" "+err.Error()) }
			})
			ctx := t.Context()
			w.fake.Inject(fakeslack.Fault{Error: code, Messages: []string{"[ERROR] unsupported type: table [json-pointer:/blocks/3/type]"}})
			m := sample("kv-longer-outputs")
			root, err := w.n.Post(ctx, channel, m)
			require.NoError(t, err)
			require.Len(t, told, 1)
			require.Contains(t, told[0], "card rejected: "+code)
			require.Contains(t, told[0], "/blocks/3/type")
			posted := w.fake.Roots(channel)[0]
			require.Nil(t, posted.Blocks)
			require.Contains(t, posted.Text, "1. Ask the client for max")
			require.Equal(t, code != "invalid_metadata_format", posted.Metadata != nil)

			// An edit that is refused clears the old blocks.
			require.NoError(t, w.n.Update(ctx, root, m))
			require.NotNil(t, w.fake.Roots(channel)[0].Blocks)
			w.fake.Inject(fakeslack.Fault{Error: code})
			require.NoError(t, w.n.Update(ctx, root, m))
			require.Nil(t, w.fake.Roots(channel)[0].Blocks)

			w.fake.Inject(fakeslack.Fault{Error: code, Times: 2})
			failure := failureOf(t, w.n.Update(ctx, root, m))
			require.Equal(t, notify.Rejected, failure.Reason, "once is enough")
			require.False(t, failure.Retryable)
		})
	}
}

func TestPacing(t *testing.T) {
	t.Parallel()
	const pace = 60 * time.Millisecond
	w := newWorkspace(t, fakeslack.Options{}, func(c *slack.Config) { c.Pace = pace })
	w.fake.AddChannel(fakeslack.Channel{ID: "C0OTHER", Name: "other"})
	var wg sync.WaitGroup
	begin := time.Now()
	for _, ch := range []string{channel, channel, channel, channel, "C0OTHER", "C0OTHER"} {
		wg.Go(func() {
			if _, err := w.n.Post(t.Context(), ch, sample("healthy")); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	require.GreaterOrEqual(t, time.Since(begin), 3*pace, "four messages to one channel; the other channel waits for none of them")
	require.Len(t, w.fake.Roots(channel), 4)
}

func TestRetryAfterKeepsTheChannelQuiet(t *testing.T) {
	t.Parallel()
	w := newWorkspace(t, fakeslack.Options{})
	w.fake.AddChannel(fakeslack.Channel{ID: "C0OTHER", Name: "other"})
	w.fake.Inject(fakeslack.Fault{Status: 429, RetryAfter: "60"})
	_, err := w.n.Post(t.Context(), channel, sample("healthy"))
	require.Equal(t, time.Minute, failureOf(t, err).After)
	calls := len(w.fake.Calls())
	_, err = w.n.Post(t.Context(), channel, sample("healthy"))
	failure := failureOf(t, err)
	require.Equal(t, notify.RateLimited, failure.Reason)
	require.False(t, failure.Maybe)
	require.InDelta(t, time.Minute, failure.After, float64(5*time.Second))
	require.Len(t, w.fake.Calls(), calls, "Slack was not asked again")
	_, err = w.n.Post(t.Context(), "C0OTHER", sample("healthy"))
	require.NoError(t, err, "other channels go on")
}

func TestADeadlineBeforeTheTurnSendsNothing(t *testing.T) {
	t.Parallel()
	w := newWorkspace(t, fakeslack.Options{}, func(c *slack.Config) { c.Pace = time.Hour })
	_, err := w.n.Post(t.Context(), channel, sample("healthy"))
	require.NoError(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	_, err = w.n.Post(ctx, channel, sample("healthy"))
	failure := failureOf(t, err)
	require.Equal(t, notify.RateLimited, failure.Reason)
	require.False(t, failure.Maybe)
	require.Len(t, w.fake.Calls(), 1)
}

func TestTokenComesFromAFileThatChanges(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "token")
	w := newWorkspace(t, fakeslack.Options{}, func(c *slack.Config) {
		c.Token = func() (string, error) {
			b, err := os.ReadFile(path)
			return string(b), err
		}
	})
	_, err := w.n.Post(t.Context(), channel, sample("healthy"))
	failure := failureOf(t, err)
	require.Equal(t, notify.Auth, failure.Reason)
	require.ErrorIs(t, err, os.ErrNotExist)

	require.NoError(t, os.WriteFile(path, []byte("xoxb-old"), 0o600))
	_, err = w.n.Post(t.Context(), channel, sample("healthy"))
	require.Equal(t, notify.Auth, failureOf(t, err).Reason)
	require.NoError(t, os.WriteFile(path, nil, 0o600))
	_, err = w.n.Post(t.Context(), channel, sample("healthy"))
	require.ErrorContains(t, err, "empty")
	require.NoError(t, os.WriteFile(path, []byte(token+"\n"), 0o600))
	_, err = w.n.Post(t.Context(), channel, sample("healthy"))
	require.NoError(t, err)

	_, err = slack.New(slack.Config{})
	require.ErrorContains(t, err, "bot token")
}

func TestCheck(t *testing.T) {
	t.Parallel()
	w := newWorkspace(t, fakeslack.Options{Scopes: []string{"chat:write", "commands"}})
	id, err := w.n.Check(t.Context())
	require.NoError(t, err)
	require.Equal(t, "Example", id.Team)
	require.Equal(t, fakeslack.BotUser, id.UserID)
	require.Equal(t, []string{"chat:write", "commands"}, id.Scopes)
	require.Empty(t, id.Missing)
	require.True(t, id.Can("commands"))
	require.False(t, id.Can("files:write"))
	var lacking []string
	for _, s := range id.Optional {
		require.NotEmpty(t, s.Loses)
		lacking = append(lacking, s.Scope)
	}
	require.Contains(t, lacking, "files:write")
	require.NotContains(t, lacking, "commands")

	w = newWorkspace(t, fakeslack.Options{Scopes: []string{"commands"}})
	id, err = w.n.Check(t.Context())
	require.NoError(t, err)
	require.Equal(t, []string{"chat:write"}, id.Missing)

	require.NoError(t, w.n.Ping(t.Context()))
	w.fake.Inject(fakeslack.Fault{Error: "invalid_auth"})
	_, err = w.n.Check(t.Context())
	require.Equal(t, notify.Auth, failureOf(t, err).Reason)
}

// TestChartsAreShownAsTheWorkspaceAllows: a picture where it may be uploaded, else Slack's own charts, else text.
func TestChartsAreShownAsTheWorkspaceAllows(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	details := func(w workspace, root notify.Ref, name string) string {
		t.Helper()
		ref, err := w.n.Reply(ctx, root, sample(name).As(notify.KindDetails))
		require.NoError(t, err)
		for _, m := range w.fake.Thread(channel, root.ID) {
			if m.TS == ref.ID {
				require.NotNil(t, m.Blocks, "not as plain text")
				return string(m.Blocks)
			}
		}
		t.Fatal("no reply")
		return ""
	}
	const native, spark = `"data_visualization"`, "▁▁▁"
	for name, tt := range map[string]struct {
		o            fakeslack.Options
		native, text bool
	}{
		"pictures":       {fakeslack.Options{Scopes: []string{"chat:write", "files:write"}}, false, false},
		"own charts":     {fakeslack.Options{Scopes: []string{"chat:write"}}, true, false},
		"not rolled out": {fakeslack.Options{Scopes: []string{"chat:write"}, NoCharts: true}, false, true},
	} {
		w := newWorkspace(t, tt.o, func(c *slack.Config) { c.View.Charts = slack.AutoCharts })
		root, err := w.n.Post(ctx, channel, sample("kv-longer-outputs"))
		require.NoError(t, err)
		for range 2 {
			blocks := details(w, root, "kv-longer-outputs")
			require.Equal(t, tt.native, strings.Contains(blocks, native), name)
			require.Equal(t, tt.text, strings.Contains(blocks, spark), name)
		}
		posts := 0
		for _, c := range w.fake.Calls() {
			if c.Method == "chat.postMessage" {
				posts++
			}
		}
		want := 3
		if tt.o.NoCharts {
			want = 4 // Slack is asked once whether it has charts, not for each message.
		}
		require.Equal(t, want, posts, name)
	}
	// The scope is there, yet an upload is refused for good.
	w := newWorkspace(t, fakeslack.Options{Scopes: []string{"chat:write", "files:write"}},
		func(c *slack.Config) { c.View.Charts = slack.AutoCharts })
	root, err := w.n.Post(ctx, channel, sample("kv-longer-outputs"))
	require.NoError(t, err)
	w.fake.Inject(fakeslack.Fault{Method: "files.getUploadURLExternal", Error: "no_permission"})
	require.Error(t, w.n.Illustrate(ctx, root, notify.Picture{PNG: []byte("\x89PNG"), Filename: "a.png", Title: "t", AltText: "a"}))
	require.Contains(t, details(w, root, "kv-longer-outputs"), native)
}

func TestPictures(t *testing.T) {
	t.Parallel()
	w := newWorkspace(t, fakeslack.Options{})
	ctx := t.Context()
	root, err := w.n.Post(ctx, "#vllm-alerts", sample("kv-longer-outputs"))
	require.NoError(t, err)
	p := notify.Picture{PNG: []byte("\x89PNG..."), Filename: "demo.png", Title: "KV <full>", AltText: "Charts of KV & queue"}
	require.NoError(t, w.n.Illustrate(ctx, root, p))
	thread := w.fake.Thread(channel, root.ID)
	require.Len(t, thread, 1)
	require.Equal(t, []fakeslack.File{{
		ID: thread[0].Files[0].ID, Name: "demo.png", Title: "KV &lt;full&gt;", AltText: "Charts of KV &amp; queue",
		MimeType: "image/png", Content: p.PNG,
	}}, thread[0].Files)

	require.Equal(t, notify.ChannelGone, failureOf(t, w.n.Illustrate(ctx, notify.Ref{Channel: "#vllm-alerts", ID: root.ID}, p)).Reason,
		"Slack refuses names here: callers use the Ref of the post")
	require.Equal(t, notify.Rejected, failureOf(t, w.n.Illustrate(ctx, root, notify.Picture{})).Reason)
	w.fake.Inject(fakeslack.Fault{Method: "upload", Status: 500})
	require.Equal(t, notify.Unavailable, failureOf(t, w.n.Illustrate(ctx, root, p)).Reason)
	w.fake.Inject(fakeslack.Fault{Method: "files.getUploadURLExternal", Status: 429, RetryAfter: "3"})
	require.Equal(t, 3*time.Second, failureOf(t, w.n.Illustrate(ctx, root, p)).After)

	poor := newWorkspace(t, fakeslack.Options{Scopes: []string{"chat:write"}})
	failure := failureOf(t, poor.n.Illustrate(ctx, root, p))
	require.Equal(t, notify.Auth, failure.Reason)
	require.Contains(t, failure.Hint, "files:write")
}

func TestErrorsTellTheNextStep(t *testing.T) {
	t.Parallel()
	w := newWorkspace(t, fakeslack.Options{Scopes: []string{"chat:write"}})
	w.fake.AddChannel(fakeslack.Channel{ID: "C0PRIVATE", Name: "secret", Private: true, Absent: true})
	w.fake.AddChannel(fakeslack.Channel{ID: "C0ABSENT", Name: "absent", Absent: true})
	w.fake.AddChannel(fakeslack.Channel{ID: "C0OLD", Name: "old", Archived: true})
	for ch, want := range map[string]string{
		"C0PRIVATE": "channel: channel_not_found (check the channel's id; into a private channel invite the bot: /invite @vllm-triage)",
		"C0ABSENT":  "channel: not_in_channel (invite the bot to the channel: /invite @vllm-triage, or grant it chat:write.public)",
		"C0OLD":     "channel: is_archived (unarchive the channel or route to another one)",
	} {
		_, err := w.n.Post(t.Context(), ch, sample("healthy"))
		require.EqualError(t, err, want)
		require.Equal(t, notify.ChannelGone, failureOf(t, err).Reason)
	}
}

func TestCancelledIsNoFailureOfSlack(t *testing.T) {
	t.Parallel()
	w := newWorkspace(t, fakeslack.Options{})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := w.n.Post(ctx, channel, sample("healthy"))
	require.ErrorIs(t, err, context.Canceled)
	require.Equal(t, notify.OtherReason, failureOf(t, err).Reason)
	require.NotErrorIs(t, err, context.DeadlineExceeded)
}

func TestAnswersAreBounded(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(`{"ok":true,"channel":"` + strings.Repeat("x", 9<<20) + `"}`))
	}))
	client := &http.Transport{}
	t.Cleanup(func() { server.Close(); client.CloseIdleConnections() })
	n, err := slack.New(slack.Config{
		Token: func() (string, error) { return token, nil }, APIURL: server.URL + "/", Transport: client,
	})
	require.NoError(t, err)
	_, err = n.Post(t.Context(), channel, sample("healthy"))
	failure := failureOf(t, err)
	require.Equal(t, notify.Unavailable, failure.Reason)
	require.True(t, failure.Maybe)
}
