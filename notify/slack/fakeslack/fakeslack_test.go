package fakeslack_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	slackgo "github.com/slack-go/slack"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"vllm-triage/notify/slack/fakeslack"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const channel = fakeslack.DefaultChannel

// open serves a workspace and returns a client for it.
func open(t *testing.T, o fakeslack.Options) (fake *fakeslack.Server, api *slackgo.Client, base string) {
	t.Helper()
	fake = fakeslack.New(o)
	server := httptest.NewServer(fake)
	transport := &http.Transport{}
	t.Cleanup(func() { fake.Close(); server.Close(); transport.CloseIdleConnections() })
	api = slackgo.New("xoxb-1", slackgo.OptionAPIURL(server.URL+"/api/"), slackgo.OptionHTTPClient(&http.Client{Transport: transport}))
	return fake, api, server.URL
}

func TestValidateRefusesWhatSlackRefuses(t *testing.T) {
	t.Parallel()
	section := `{"type":"section","text":{"type":"mrkdwn","text":"x"}}`
	button := func(extra string) string {
		return `{"type":"actions","elements":[{"type":"button","text":{"type":"plain_text","text":"b"},"action_id":"a"` + extra + `}]}`
	}
	rich := func(e string) string {
		return `{"type":"rich_text","elements":[{"type":"rich_text_section","elements":[` + e + `]}]}`
	}
	row := `[{"type":"raw_text","text":"a"},{"type":"raw_text","text":"b"}]`
	list := func(b string, n int) string { return strings.TrimSuffix(strings.Repeat(b+",", n), ",") }
	tests := []struct{ name, blocks, code, pointer string }{
		{"fine", section, "", ""},
		{"not json", `}`, "invalid_blocks_format", ""},
		{"51 blocks", list(section, 51), "invalid_blocks", "/blocks]"},
		{"unknown type", `{"type":"alert"}`, "invalid_blocks", "/blocks/0/type"},
		{"input in a message", `{"type":"input"}`, "invalid_blocks", "/blocks/0/type"},
		{"empty text", `{"type":"section","text":{"type":"mrkdwn","text":""}}`, "invalid_blocks", "/blocks/0/text/text"},
		{"long section", `{"type":"section","text":{"type":"mrkdwn","text":"` + strings.Repeat("가", 3001) + `"}}`, "invalid_blocks", "/blocks/0/text/text"},
		{"3,000 characters are fine", `{"type":"section","text":{"type":"mrkdwn","text":"` + strings.Repeat("가", 3000) + `"}}`, "", ""},
		{"section without text", `{"type":"section"}`, "invalid_blocks", "/blocks/0]"},
		{"11 fields", `{"type":"section","fields":[` + list(`{"type":"mrkdwn","text":"x"}`, 11) + `]}`, "invalid_blocks", "/blocks/0/fields"},
		{"mrkdwn header", `{"type":"header","text":{"type":"mrkdwn","text":"x"}}`, "invalid_blocks", "/blocks/0/text/type"},
		{"long header", `{"type":"header","text":{"type":"plain_text","text":"` + strings.Repeat("x", 151) + `"}}`, "invalid_blocks", "/blocks/0/text/text"},
		{"11 context elements", `{"type":"context","elements":[` + list(`{"type":"mrkdwn","text":"x"}`, 11) + `]}`, "invalid_blocks", "/blocks/0/elements"},
		{"emoji in mrkdwn", `{"type":"section","text":{"type":"mrkdwn","text":"x","emoji":true}}`, "invalid_blocks", "/blocks/0/text/emoji"},
		{"unknown field", `{"type":"divider","colour":"red"}`, "invalid_blocks", "/blocks/0]"},
		{"button", button(`,"value":"v","url":"https://x/"`), "", ""},
		{"button value", button(`,"value":"` + strings.Repeat("v", 2001) + `"`), "invalid_blocks", "/blocks/0/elements/0/value"},
		{"button url", button(`,"url":"https://x/` + strings.Repeat("v", 3000) + `"`), "invalid_blocks", "/blocks/0/elements/0/url"},
		{"button scheme", button(`,"url":"javascript:x"`), "invalid_blocks", "/blocks/0/elements/0/url"},
		{"button style", button(`,"style":"green"`), "invalid_blocks", "/blocks/0/elements/0/style"},
		{"button text", `{"type":"actions","elements":[{"type":"button","text":{"type":"plain_text","text":"` + strings.Repeat("x", 76) + `"}}]}`, "invalid_blocks", "/blocks/0/elements/0/text/text"},
		{"26 buttons", `{"type":"actions","elements":[` + list(`{"type":"button","text":{"type":"plain_text","text":"b"}}`, 26) + `]}`, "invalid_blocks", "/blocks/0/elements"},
		{"same action twice", `{"type":"actions","elements":[` + list(`{"type":"button","text":{"type":"plain_text","text":"b"},"action_id":"a"}`, 2) + `]}`, "invalid_blocks", "/blocks/0/elements/1/action_id"},
		{"option value", `{"type":"actions","elements":[{"type":"static_select","options":[{"text":{"type":"plain_text","text":"x"},"value":"` + strings.Repeat("v", 151) + `"}]}]}`, "invalid_blocks", "/options/0/value"},
		{"no options", `{"type":"actions","elements":[{"type":"static_select","options":[]}]}`, "invalid_blocks", "/options]"},
		{"overflow of 6", `{"type":"actions","elements":[{"type":"overflow","options":[` + list(`{"text":{"type":"plain_text","text":"x"},"value":"v"}`, 6) + `]}]}`, "invalid_blocks", "/options]"},
		{"same block id", `{"type":"divider","block_id":"a"},{"type":"divider","block_id":"a"}`, "invalid_blocks", "/blocks/1/block_id"},
		{"rich text", rich(`{"type":"text","text":"x","style":{"bold":true}},{"type":"link","url":"https://x/"},{"type":"user","user_id":"U012AB"}`), "", ""},
		{"rich text, empty", rich(`{"type":"text","text":""}`), "invalid_blocks", "/blocks/0/elements/0/elements/0/text"},
		{"rich text, no elements", rich(``), "invalid_blocks", "/blocks/0/elements/0/elements"},
		{"rich text, script", rich(`{"type":"link","url":"javascript:x"}`), "invalid_blocks", "/url"},
		{"rich text, user", rich(`{"type":"user","user_id":"<!here>"}`), "invalid_blocks", "/user_id"},
		{"rich list", `{"type":"rich_text","elements":[{"type":"rich_text_list","style":"dash","elements":[]}]}`, "invalid_blocks", "/style"},
		{"table", `{"type":"table","rows":[` + row + `,` + row + `]}`, "", ""},
		{"empty cell", `{"type":"table","rows":[[{"type":"raw_text","text":""}]]}`, "invalid_blocks", "/blocks/0/rows/0/0/text"},
		{"ragged table", `{"type":"table","rows":[` + row + `,[{"type":"raw_text","text":"a"}]]}`, "invalid_blocks", "/blocks/0/rows/1"},
		{"101 rows", `{"type":"table","rows":[` + list(row, 101) + `]}`, "invalid_blocks", "/blocks/0/rows"},
		{"two tables", list(`{"type":"table","rows":[`+row+`]}`, 2), "invalid_blocks", "only_one_table_allowed"},
		{"big cells", `{"type":"table","rows":[` + list(`[{"type":"raw_text","text":"`+strings.Repeat("x", 2600)+`"}]`, 4) + `]}`, "invalid_blocks", "table cells exceed"},
		{"too much in all", list(`{"type":"section","text":{"type":"mrkdwn","text":"`+strings.Repeat("x", 2900)+`"}}`, 5), "msg_blocks_too_long", ""},
		{"image without alt", `{"type":"image","image_url":"https://x/y.png"}`, "invalid_blocks", "/blocks/0/alt_text"},
		{"image with both", `{"type":"image","alt_text":"x","image_url":"https://x/y.png","slack_file":{"id":"F1"}}`, "invalid_blocks", "/blocks/0]"},
		{"chart", `{"type":"data_visualization","title":"t","chart":{"type":"line","axis_config":{"categories":["a"]},"series":[{"name":"s","data":[{"label":"a","value":1}]}]}}`, "", ""},
		{"chart with a hole", `{"type":"data_visualization","title":"t","chart":{"type":"line","axis_config":{"categories":["a","b"]},"series":[{"name":"s","data":[{"label":"a","value":1}]}]}}`, "invalid_blocks", "/chart/series/0/data"},
		{"chart category", `{"type":"data_visualization","title":"t","chart":{"type":"line","axis_config":{"categories":["` + strings.Repeat("c", 21) + `"]},"series":[]}}`, "invalid_blocks", "/categories/0"},
	}
	for _, tt := range tests {
		code, messages := fakeslack.Validate(json.RawMessage("[" + tt.blocks + "]"))
		require.Equal(t, tt.code, code, "%s: %v", tt.name, messages)
		require.Contains(t, strings.Join(messages, "\n"), tt.pointer, tt.name)
	}
}

func TestMarkup(t *testing.T) {
	t.Parallel()
	block := json.RawMessage(`[{"type":"section","text":{"type":"mrkdwn","text":"<@U1> & <https://x/|y> a > b"}},
		{"type":"header","text":{"type":"plain_text","text":"a < b"}},
		{"type":"rich_text","elements":[{"type":"rich_text_section","elements":[
			{"type":"text","text":"<!here> is text here"},{"type":"broadcast","range":"channel"},{"type":"usergroup","usergroup_id":"S1"}]}]}]`)
	m := fakeslack.ReadMarkup("<!here> <javascript:x> &lt;fine&gt; @channel", block)
	require.ElementsMatch(t, []string{"<!here>", "<@U1>", "<!channel>", "<!subteam^S1>"}, m.Mentions)
	require.ElementsMatch(t, []string{"javascript:x", "https://x/"}, m.Links)
	require.Len(t, m.Violations, 4, "%v", m.Violations) // The link, bare @channel, & or > in the section, < in the header.
}

func TestPostsAndEdits(t *testing.T) {
	t.Parallel()
	fake, api, _ := open(t, fakeslack.Options{})
	_, first, err := api.PostMessage("#vllm-alerts", slackgo.MsgOptionText("one <bad", false))
	require.NoError(t, err)
	_, second, err := api.PostMessage(channel, slackgo.MsgOptionText("two", false))
	require.NoError(t, err)
	require.NotEqual(t, first, second, "timestamps are unique")
	_, _, _, err = api.UpdateMessage(channel, first, slackgo.MsgOptionText("one, edited", false))
	require.NoError(t, err)
	roots := fake.Roots(channel)
	require.Len(t, roots, 2)
	require.Equal(t, "one, edited", roots[0].Text)
	require.Equal(t, "one <bad", roots[0].Edits[0].Text)
	require.Len(t, fake.Violations(), 1)

	for code, call := range map[string]func() error{
		"no_text": func() error { _, _, err := api.PostMessage(channel); return err },
		"msg_too_long": func() error {
			_, _, err := api.PostMessage(channel, slackgo.MsgOptionText(strings.Repeat("x", 40_001), false))
			return err
		},
		"channel_not_found": func() error { _, _, err := api.PostMessage("C0NONE", slackgo.MsgOptionText("x", false)); return err },
		"invalid_thread_ts": func() error {
			_, _, err := api.PostMessage(channel, slackgo.MsgOptionText("x", false), slackgo.MsgOptionTS("x"))
			return err
		},
		"thread_not_found": func() error {
			_, _, err := api.PostMessage(channel, slackgo.MsgOptionText("x", false), slackgo.MsgOptionTS("1000000000.000001"))
			return err
		},
		"message_not_found": func() error {
			_, _, _, err := api.UpdateMessage(channel, "1.2", slackgo.MsgOptionText("x", false))
			return err
		},
		"cant_update_message": func() error {
			_, _, _, err := api.UpdateMessage(channel, fake.Say(channel, "U1", "hi"), slackgo.MsgOptionText("x", false))
			return err
		},
		"user_not_found":     func() error { _, err := api.GetUserInfo("U9"); return err },
		"invalid_trigger_id": func() error { _, err := api.OpenView("none", slackgo.ModalViewRequest{Type: "modal"}); return err },
		"cannot_reply_to_message": func() error {
			_, reply, err := api.PostMessage(channel, slackgo.MsgOptionText("x", false), slackgo.MsgOptionTS(first))
			require.NoError(t, err)
			_, _, err = api.PostMessage(channel, slackgo.MsgOptionText("x", false), slackgo.MsgOptionTS(reply))
			return err
		},
		"invalid_blocks": func() error {
			_, _, err := api.PostMessage(channel, slackgo.MsgOptionBlocks(slackgo.NewSectionBlock(nil, nil, nil)))
			var refused slackgo.SlackErrorResponse
			require.ErrorAs(t, err, &refused)
			require.Contains(t, refused.ResponseMetadata.Messages[0], "[json-pointer:/blocks/0]")
			return err
		},
	} {
		require.EqualError(t, call(), code)
	}
	require.Len(t, fake.Thread(channel, first), 1)
}

func TestTokensAndScopes(t *testing.T) {
	t.Parallel()
	_, api, base := open(t, fakeslack.Options{Token: "xoxb-2"})
	_, err := api.AuthTest()
	require.EqualError(t, err, "invalid_auth")
	_, api, _ = open(t, fakeslack.Options{Scopes: []string{"commands"}})
	_, _, err = api.PostMessage(channel, slackgo.MsgOptionText("x", false))
	var refused slackgo.SlackErrorResponse
	require.ErrorAs(t, err, &refused)
	require.Equal(t, "missing_scope chat:write commands", refused.Err+" "+refused.Needed+" "+refused.Provided)
	id, err := api.AuthTest()
	require.NoError(t, err)
	require.Equal(t, "commands", id.Header.Get("X-OAuth-Scopes"))
	none := slackgo.New("", slackgo.OptionAPIURL(base+"/api/"))
	_, err = none.AuthTest()
	require.EqualError(t, err, "not_authed")
	http.DefaultClient.CloseIdleConnections()
}

func TestRateLimit(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	now := time.Date(2026, 11, 29, 5, 0, 0, 0, time.UTC)
	fake, api, _ := open(t, fakeslack.Options{RateEvery: time.Second, Burst: 2, Now: func() time.Time {
		mu.Lock()
		defer mu.Unlock()
		return now
	}})
	post := func() error { _, _, err := api.PostMessage(channel, slackgo.MsgOptionText("x", false)); return err }
	require.NoError(t, post())
	require.NoError(t, post())
	var limited *slackgo.RateLimitedError
	require.ErrorAs(t, post(), &limited)
	require.Equal(t, time.Second, limited.RetryAfter)
	mu.Lock()
	now = now.Add(time.Second)
	mu.Unlock()
	require.NoError(t, post())
	require.Len(t, fake.Roots(channel), 3)
	require.Equal(t, "ratelimited", fake.Calls()[2].Error)
}

func TestResponseURLs(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 29, 5, 0, 0, 0, time.UTC)
	fake, api, base := open(t, fakeslack.Options{Now: func() time.Time { return now }})
	address := fake.NewResponseURL(base, channel, "U1", "")
	send := func(kind string) error {
		_, _, err := api.PostMessage("", slackgo.MsgOptionResponseURL(address, kind), slackgo.MsgOptionText("answer", false))
		return err
	}
	require.NoError(t, send(slackgo.ResponseTypeEphemeral))
	require.NoError(t, send(slackgo.ResponseTypeInChannel))
	require.Equal(t, "U1", fake.Ephemeral(channel)[0].To)
	require.Len(t, fake.Roots(channel), 1)
	for range 3 {
		require.NoError(t, send(slackgo.ResponseTypeEphemeral))
	}
	require.Error(t, send(slackgo.ResponseTypeEphemeral), "five uses")

	address = fake.NewResponseURL(base, channel, "U1", "")
	now = now.Add(31 * time.Minute)
	require.Error(t, send(slackgo.ResponseTypeEphemeral), "thirty minutes")

	_, ts, err := api.PostMessage(channel, slackgo.MsgOptionText("card", false))
	require.NoError(t, err)
	address = fake.NewResponseURL(base, channel, "U1", ts)
	_, _, err = api.PostMessage("", slackgo.MsgOptionReplaceOriginal(address), slackgo.MsgOptionText("replaced", false))
	require.NoError(t, err)
	roots := fake.Roots(channel)
	require.Equal(t, "replaced", roots[len(roots)-1].Text)
}

func TestModals(t *testing.T) {
	t.Parallel()
	fake, api, _ := open(t, fakeslack.Options{})
	text := func(s string) *slackgo.TextBlockObject {
		return slackgo.NewTextBlockObject("plain_text", s, false, false)
	}
	view := slackgo.ModalViewRequest{
		Type: "modal", CallbackID: "cause", PrivateMetadata: "i1", Title: text("Which cause?"), Submit: text("Send"),
		Blocks: slackgo.Blocks{BlockSet: []slackgo.Block{slackgo.NewInputBlock("comment", text("Comment"), nil,
			slackgo.NewPlainTextInputBlockElement(nil, "text"))}},
	}
	trigger := fake.NewTrigger()
	opened, err := api.OpenView(trigger, view)
	require.NoError(t, err)
	_, err = api.OpenView(trigger, view)
	require.EqualError(t, err, "invalid_trigger_id", "good for one use")
	view.Title = text("Another title")
	_, err = api.UpdateView(view, "", "wrong hash", opened.ID)
	require.EqualError(t, err, "hash_conflict")
	_, err = api.UpdateView(view, "", opened.Hash, opened.ID)
	require.NoError(t, err)
	require.Len(t, fake.Views(), 1)
	require.Contains(t, string(fake.Views()[0].Title), "Another title")
	view.Title = text(strings.Repeat("x", 25))
	_, err = api.OpenView(fake.NewTrigger(), view)
	require.EqualError(t, err, "invalid_arguments")
}

func TestRequestsFromSlackAreSigned(t *testing.T) {
	t.Parallel()
	const secret = "signing secret"
	fake, api, base := open(t, fakeslack.Options{})
	_, ts, err := api.PostMessage(channel, slackgo.MsgOptionText("card", false))
	require.NoError(t, err)
	verify := func(r *http.Request) {
		t.Helper()
		v, err := slackgo.NewSecretsVerifier(r.Header, secret)
		require.NoError(t, err)
		body := make([]byte, r.ContentLength)
		_, err = r.Body.Read(body)
		require.NoError(t, err)
		_, err = v.Write(body)
		require.NoError(t, err)
		require.NoError(t, v.Ensure())
	}
	r, err := fake.SlashRequest(t.Context(), "https://triage/slack/commands", secret, base, channel, "U1", "/vllm-triage", "demo for 30m")
	require.NoError(t, err)
	verify(r)

	r, err = fake.InteractionRequest(t.Context(), "https://triage/slack/interactivity", secret, base,
		fakeslack.Press{Channel: channel, TS: ts, User: "U1", ActionID: "silence", Option: "silence_4h:i1"})
	require.NoError(t, err)
	require.NoError(t, r.ParseForm())
	var callback slackgo.InteractionCallback
	require.NoError(t, json.Unmarshal([]byte(r.PostForm.Get("payload")), &callback))
	require.Equal(t, "silence_4h:i1", callback.ActionCallback.BlockActions[0].SelectedOption.Value)
	require.Equal(t, ts, callback.Container.MessageTs)

	r, err = fake.SubmitRequest(t.Context(), "https://triage/x", secret, "U1", fakeslack.View{CallbackID: "cause", PrivateMetadata: "i1"},
		map[string]map[string]any{"comment": {"text": map[string]any{"type": "plain_text_input", "value": "no"}}})
	require.NoError(t, err)
	require.NoError(t, r.ParseForm())
	callback = slackgo.InteractionCallback{}
	require.NoError(t, json.Unmarshal([]byte(r.PostForm.Get("payload")), &callback))
	require.Equal(t, "no", callback.View.State.Values["comment"]["text"].Value)
}

func TestFilesAreProcessedLater(t *testing.T) {
	t.Parallel()
	fake, api, _ := open(t, fakeslack.Options{FilePolls: 1})
	f, err := api.UploadFile(slackgo.UploadFileParameters{
		Content: "png", FileSize: 3, Filename: "x.png", Channel: channel, AltTxt: "alt",
	})
	require.NoError(t, err)
	info, _, _, err := api.GetFileInfo(f.ID, 0, 0)
	require.NoError(t, err)
	require.Empty(t, info.Mimetype)
	info, _, _, err = api.GetFileInfo(f.ID, 0, 0)
	require.NoError(t, err)
	require.Equal(t, "image/png", info.Mimetype)
	stored, ok := fake.FileByID(f.ID)
	require.True(t, ok)
	require.Equal(t, "png", string(stored.Content))
	_, err = api.UploadFile(slackgo.UploadFileParameters{Content: "png", FileSize: 4, Filename: "x.png", Channel: channel})
	require.ErrorContains(t, err, "UploadToURL", "the length must be true")
}

func TestUsersHaveZones(t *testing.T) {
	t.Parallel()
	fake, api, _ := open(t, fakeslack.Options{})
	fake.SetUser("U1", "UTC")
	u, err := api.GetUserInfo("U1")
	require.NoError(t, err)
	require.Equal(t, "UTC", u.TZ)
}

func TestListen(t *testing.T) {
	t.Parallel()
	fake := fakeslack.New(fakeslack.Options{})
	base, stop, err := fake.Listen(t.Context())
	require.NoError(t, err)
	transport := &http.Transport{}
	api := slackgo.New("xoxb-1", slackgo.OptionAPIURL(base+"/api/"), slackgo.OptionHTTPClient(&http.Client{Transport: transport}))
	_, err = api.AuthTest()
	require.NoError(t, err)
	transport.CloseIdleConnections()
	stop()
	_, err = api.AuthTest()
	require.Error(t, err)
}

func TestHistoryHasPages(t *testing.T) {
	t.Parallel()
	fake, api, _ := open(t, fakeslack.Options{})
	for i := range 5 {
		fake.Say(channel, "U1", strconv.Itoa(i))
	}
	var got []string
	cursor := ""
	for {
		page, err := api.GetConversationHistory(&slackgo.GetConversationHistoryParameters{ChannelID: channel, Limit: 2, Cursor: cursor})
		require.NoError(t, err)
		for _, m := range page.Messages {
			got = append(got, m.Text)
		}
		if cursor = page.ResponseMetaData.NextCursor; cursor == "" {
			break
		}
	}
	require.Equal(t, []string{"4", "3", "2", "1", "0"}, got, "newest first")
}

func FuzzValidate(f *testing.F) {
	f.Add(`[{"type":"section","text":{"type":"mrkdwn","text":"x"}}]`)
	f.Add(`[{"type":"table","rows":[[null]]},{"type":"rich_text","elements":[1,{"type":"rich_text_list","elements":[{}]}]}]`)
	f.Add(`[{"type":"data_visualization","chart":{"type":"line"}},null,[],{"type":"actions","elements":[null]}]`)
	f.Fuzz(func(_ *testing.T, blocks string) {
		fakeslack.Validate(json.RawMessage(blocks))
		fakeslack.ReadMarkup(blocks, json.RawMessage(blocks))
	})
}
