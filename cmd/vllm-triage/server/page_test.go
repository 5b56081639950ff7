package server_test

import (
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"vllm-triage/cmd/vllm-triage/server/web"
	"vllm-triage/notify"
)

// link is the address in a message's button, without the host.
func (w *world) link(action string) string {
	w.t.Helper()
	found := regexp.MustCompile(`"action_id":"` + action + `","url":"https://triage\.example\.org([^"]+)"`).
		FindStringSubmatch(string(w.card().Blocks))
	require.NotNil(w.t, found)
	return strings.ReplaceAll(found[1], `\u0026`, "&")
}

func html(r *http.Request) { r.Header.Set("Accept", "text/html") }

func form(r *http.Request) { r.Header.Set("Content-Type", "application/x-www-form-urlencoded") }

// csrf is the token of the forms of a page.
func csrf(page string) string {
	found := regexp.MustCompile(`name="` + web.FieldToken + `" value="([^"]+)"`).FindStringSubmatch(page)
	if found == nil {
		return ""
	}
	return found[1]
}

// opened is a world with one incident that was told.
func opened(t *testing.T, o setup) *world {
	t.Helper()
	w := newWorld(t, o)
	w.notify(alert{name: "TTFT"})
	w.pass(time.Minute)
	return w
}

// The link in the message opens the incident and its runbook, and nothing else, until it expires.
func TestLinksOfMessages(t *testing.T) {
	t.Parallel()
	w := opened(t, setup{})
	for _, action := range []string{"open_incident", "open_runbook"} {
		status, page := w.get(w.link(action), html)
		require.Equal(t, http.StatusOK, status, action)
		require.NotEmpty(t, csrf(page), action)
	}
	address := w.link("open_incident")
	status, _ := w.get("/", html)
	require.Equal(t, http.StatusUnauthorized, status)
	path, grant, _ := strings.Cut(address, "?")
	grant = "?" + grant
	for _, other := range []string{"/", "/incidents", "/metrics", "/api/v1/incidents", "/incidents/other"} {
		status, _ = w.get(other+grant, html)
		require.Equal(t, http.StatusUnauthorized, status, other)
	}
	for _, tampered := range []string{
		strings.Replace(address, "expires=1", "expires=2", 1), address[:len(address)-1] + "x", path,
		strings.Replace(address, "signature=", "signature=&x=", 1),
	} {
		status, _ = w.get(tampered, html)
		require.Equal(t, http.StatusUnauthorized, status, tampered)
	}
	w.clock.set(begin.Add(32 * 24 * time.Hour))
	status, _ = w.get(address, html)
	require.Equal(t, http.StatusUnauthorized, status)
}

// The links that pages and messages carry lead to pages that exist for their reader.
func TestEveryLinkOfThePageWorks(t *testing.T) {
	t.Parallel()
	w := opened(t, setup{sections: map[string]string{"pages": `{rate_limit: 1000}`}})
	seen := map[string]bool{}
	queue := []string{w.link("open_incident")}
	for len(queue) > 0 {
		address := queue[0]
		queue = queue[1:]
		if seen[address] || len(seen) > 60 {
			continue
		}
		seen[address] = true
		status, page, h := w.do(http.MethodGet, address, "", html)
		require.Equal(t, http.StatusOK, status, address)
		require.Equal(t, web.CSP, h.Get("Content-Security-Policy"), address)
		if !strings.HasPrefix(h.Get("Content-Type"), "text/html") {
			continue
		}
		for _, m := range regexp.MustCompile(`(?:href|src)="(/[^"#]*)`).FindAllStringSubmatch(page, -1) {
			next := strings.ReplaceAll(m[1], "&amp;", "&")
			// The list and the index of runbooks are for those who may see everything.
			if path, _, _ := strings.Cut(next, "?"); path != "/" && path != "/incidents" && path != "/runbooks" {
				queue = append(queue, next)
			}
		}
	}
	require.Greater(t, len(seen), 4)
}

// A user counts only when a configured proxy names them.
func TestUserHeader(t *testing.T) {
	t.Parallel()
	as := func(r *http.Request) { r.Header.Set("X-Auth-Request-User", "mina") }
	for networks, want := range map[string]int{"[127.0.0.0/8, \"::1/128\"]": http.StatusOK, "[10.0.0.0/8]": http.StatusUnauthorized} {
		w := opened(t, setup{sections: map[string]string{
			"server": `{trusted_proxies: ` + networks + `}`, "pages": `{user_header: X-Auth-Request-User}`,
		}})
		status, page := w.get("/", html, as)
		require.Equal(t, want, status)
		if want == http.StatusOK {
			require.Contains(t, page, "mina")
		}
		status, _ = w.get("/", html)
		require.Equal(t, http.StatusUnauthorized, status, "without a user")
		status, _ = w.post("/webhook/alertmanager", string(notification(0, alert{name: "X"})), as)
		require.Equal(t, http.StatusUnauthorized, status, "readers do not post alerts")
	}
}

// Forms need the token of the page they were on: another page of the same reader, or another reader's, does not do.
func TestForms(t *testing.T) {
	t.Parallel()
	w := opened(t, setup{})
	address := w.link("open_incident")
	path, grant, _ := strings.Cut(address, "?")
	_, page := w.get(address, html)
	send := func(what, token string, values url.Values, with ...func(*http.Request)) (int, http.Header) {
		values = maps.Clone(values)
		values.Set(web.FieldToken, token)
		status, _, h := w.do(http.MethodPost, path+"/"+what+"?"+grant, values.Encode(), append(with, form)...)
		return status, h
	}
	right := url.Values{web.FieldOpinion: {web.OpinionRight}, web.FieldComment: {"<script>alert(1)</script>"}}
	for _, token := range []string{"", "0123456789abcdef0123456789abcdef"} {
		status, _ := send("feedback", token, right)
		require.Equal(t, http.StatusForbidden, status)
	}
	_, asUser := w.get(path, html, authorized)
	status, _ := send("feedback", csrf(asUser), right)
	require.Equal(t, http.StatusForbidden, status, "the token of another reader")

	status, h := send("feedback", csrf(page), right)
	require.Equal(t, http.StatusSeeOther, status)
	require.True(t, strings.HasPrefix(h.Get("Location"), path+"?"), h.Get("Location"))
	feedback, err := w.store.Feedback(t.Context(), w.incident().ID)
	require.NoError(t, err)
	require.Len(t, feedback, 1)
	require.Equal(t, "right", feedback[0].Opinion)
	_, page = w.get(address, html)
	require.NotContains(t, page, "<script>alert")

	for what, values := range map[string]url.Values{
		"feedback": {web.FieldOpinion: {"maybe"}},
		"steps":    {web.FieldPage: {"kv_cache_exhaustion"}, web.FieldStep: {"none"}, web.FieldState: {web.StateDone}},
		"outcome":  {web.FieldPage: {"no_such_page"}, web.FieldState: {web.StateHelped}},
		"recheck":  {web.FieldPage: {"no_such_page"}},
	} {
		status, _ := send(what, csrf(page), values)
		require.Equal(t, http.StatusBadRequest, status, what)
	}
	_, runbook := w.get(w.link("open_runbook"), html)
	step := regexp.MustCompile(`name="` + web.FieldStep + `" value="([^"]+)"`).FindStringSubmatch(runbook)
	require.NotNil(t, step)
	status, h = send("steps", csrf(page), url.Values{
		web.FieldPage: {"kv_cache_exhaustion"}, web.FieldStep: {step[1]}, web.FieldState: {web.StateHelped}, web.FieldComment: {"it did"},
	})
	require.Equal(t, http.StatusSeeOther, status)
	require.Contains(t, h.Get("Location"), "/runbooks/kv_cache_exhaustion?")
	w.pass(time.Minute)
	require.Contains(t, w.replies(notify.KindNote)[0], "helped")
	require.Contains(t, w.replies(notify.KindNote)[0], "it did")
}

// A re-check asks the same questions again: what they read then and read now stays with the incident and is told in its
// thread, in its language.
func TestRecheck(t *testing.T) {
	t.Parallel()
	w := opened(t, setup{})
	id := w.incident().ID
	w.engine.says(nil)
	asked := w.engine.count()
	require.NoError(t, w.server.Recheck(t.Context(), id, "mina", "kv_cache_exhaustion", ""))
	require.NoError(t, w.server.Recheck(t.Context(), id, "mina", "kv_cache_exhaustion", ""), "a double click")
	w.pass(time.Minute)
	require.Equal(t, asked+2, w.engine.count(), "the re-check and the look after two minutes")
	notes := w.replies(notify.KindNote)
	require.Len(t, notes, 1)
	require.Contains(t, notes[0], "Re-checked: KV cache full")
	require.Contains(t, notes[0], "during the incident")
	checks, err := w.store.Checks(t.Context(), id)
	require.NoError(t, err)
	require.Len(t, checks, 1)
	require.Contains(t, string(checks[0].Body), `"readings":[{`)
	_, page := w.get(w.link("open_incident"), html)
	require.Contains(t, page, "mina")

	w.notify(alert{name: "TTFT", end: 2 * time.Minute})
	w.pass(time.Minute)
	require.NoError(t, w.server.Recheck(t.Context(), id, "mina", "", ""))
	w.pass(time.Minute)
	require.Contains(t, w.replies(notify.KindNote)[1], "Re-checked: No bottleneck found")
}

// The rate is limited for pages and the API by who asks, told apart behind a proxy; webhooks have no limit.
func TestRateLimitOfPages(t *testing.T) {
	t.Parallel()
	w := newWorld(t, setup{sections: map[string]string{
		"pages": `{rate_limit: 2}`, "server": `{trusted_proxies: [127.0.0.0/8]}`,
	}})
	from := func(ip string) func(*http.Request) {
		return func(r *http.Request) { r.Header.Set("X-Forwarded-For", "203.0.113.9, "+ip) }
	}
	statuses := func(ip string) map[int]int {
		out := map[int]int{}
		for range 20 {
			status, _ := w.get("/api/v1/incidents", authorized, from(ip))
			out[status]++
		}
		return out
	}
	first := statuses("198.51.100.1")
	require.GreaterOrEqual(t, first[http.StatusOK], 4)
	require.Positive(t, first[http.StatusTooManyRequests])
	require.Positive(t, statuses("198.51.100.2")[http.StatusOK], "another source")
	for i := range 50 {
		w.notify(alert{name: "TTFT", model: fmt.Sprint("m", i)})
	}
	require.InDelta(t, 50, w.metric(`vllm_triage_webhook_requests_total{result="accepted"}`), 0)
}

// The API has the same rules and answers in JSON.
func TestAPI(t *testing.T) {
	t.Parallel()
	w := opened(t, setup{})
	id := w.incident().ID
	status, answer := w.get("/api/v1/incidents/" + id)
	require.Equal(t, http.StatusUnauthorized, status)
	require.Contains(t, answer, `"request_id"`)
	status, answer = w.get("/api/v1/incidents", authorized)
	require.Equal(t, http.StatusOK, status)
	require.Contains(t, answer, `"bottleneck":"kv_cache_exhaustion"`)
	status, answer = w.get("/api/v1/incidents/"+id, authorized)
	require.Equal(t, http.StatusOK, status)
	require.Contains(t, answer, `"verdict":"cause_found"`)
	for path, want := range map[string]int{
		"/api/v1/incidents/none": http.StatusNotFound, "/api/v1/incidents?status=open": http.StatusBadRequest,
		"/api/v1/incidents?before=yesterday": http.StatusBadRequest, "/runbooks/no_such_cause": http.StatusNotFound,
		"/incidents/" + id + "/chart.png": http.StatusOK, "/incidents/" + id + ".json": http.StatusOK, "/no/such/page": http.StatusNotFound,
	} {
		status, _ = w.get(path, authorized)
		require.Equal(t, want, status, path)
	}
}

// An incident that was not looked at yet has a page too, and one whose report is gone says so.
func TestPageBeforeTheFirstReport(t *testing.T) {
	t.Parallel()
	w := newWorld(t, setup{})
	w.notify(alert{name: "TTFT"})
	id := w.incident().ID
	status, _ := w.get("/incidents/"+id, html, authorized)
	require.Equal(t, http.StatusOK, status)
	status, _ = w.get("/incidents/"+id+"/chart.png", authorized)
	require.Equal(t, http.StatusNotFound, status)
}

// What comes from labels is text on every page.
func TestHostileLabelsOnPages(t *testing.T) {
	t.Parallel()
	w := newWorld(t, setup{})
	const bad = `"><script>alert(1)</script><img src=x onerror=alert(1)>`
	w.notify(alert{name: bad, model: bad, labels: map[string]string{"namespace": bad, "severity": bad}})
	w.pass(time.Minute)
	id := w.incident().ID
	for _, path := range []string{"/", "/incidents/" + id, "/runbooks/kv_cache_exhaustion?incident=" + id, "/?model=" + url.QueryEscape(bad)} {
		status, page := w.get(path, html, authorized)
		require.Equal(t, http.StatusOK, status)
		require.NotContains(t, page, "<script>alert", path)
		require.NotContains(t, page, "<img src=x", path)
	}
	require.Empty(t, w.slack.Violations())
}

// Load balancers ask with HEAD, and who tries an address with the wrong method must not take it for a wrong address.
func TestMethods(t *testing.T) {
	t.Parallel()
	w := opened(t, setup{})
	for _, path := range []string{"/-/healthy", "/-/ready", "/-/accepting", "/runbooks/kv_cache_exhaustion", w.link("open_incident")} {
		status, body, _ := w.do(http.MethodHead, path, "", html)
		require.Equal(t, http.StatusOK, status, path)
		require.Empty(t, body, path)
	}
	for _, tt := range []struct{ method, path, allow string }{
		{http.MethodGet, "/webhook/alertmanager", "POST"},
		{http.MethodPut, "/webhook/alertmanager", "POST"},
		{http.MethodGet, "/-/reload", "POST"},
		{http.MethodPost, "/incidents", "GET"},
		{http.MethodDelete, "/incidents/some", "GET"},
		{http.MethodPost, "/runbooks/kv_cache_exhaustion", "GET"},
	} {
		status, body, h := w.do(tt.method, tt.path, "")
		require.Equal(t, http.StatusMethodNotAllowed, status, tt)
		require.Contains(t, h.Get("Allow"), tt.allow, tt)
		require.Contains(t, body, "this address takes ", tt)
	}
	for _, path := range []string{"/webhook", "/webhook/", "/api/v2/alerts"} {
		status, body, _ := w.do(http.MethodPost, path, "")
		require.Equal(t, http.StatusNotFound, status, path)
		require.Contains(t, body, "Alertmanager posts to /webhook/alertmanager", path)
	}
}
