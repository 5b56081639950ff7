package slack

import (
	"net/http"
	"slices"
	"strings"
	"sync/atomic"

	"vllm-triage/notify"
	"vllm-triage/triage"
)

// scopesHeader names what the token may do. Slack sends it with every answer of the Web API.
const scopesHeader = "X-OAuth-Scopes"

// scopesOf reads the scopes of an answer, sorted; empty when Slack did not say.
func scopesOf(h http.Header) []string {
	var out []string
	for s := range strings.SplitSeq(h.Get(scopesHeader), ",") {
		if s = strings.TrimSpace(s); s != "" {
			out = append(out, s)
		}
	}
	slices.Sort(out)
	return out
}

// learned is what answers have shown of the workspace. It is safe for concurrent use.
type learned struct {
	scopes   atomic.Pointer[[]string] // nil until Slack has said.
	noUpload atomic.Bool              // An upload was refused for good.
	noNative atomic.Bool              // Slack's own charts were refused, and the same message without them was not.
}

// see remembers the scopes of an answer.
func (l *learned) see(h http.Header) {
	if scopes := scopesOf(h); len(scopes) > 0 {
		l.scopes.Store(&scopes)
	}
}

// view is how to show a message in the workspace as far as it is known.
func (n *Notifier) view(m notify.Message) View {
	v := n.c.View
	if v.Charts != AutoCharts {
		return v
	}
	scopes := n.learned.scopes.Load()
	switch {
	case m.Verdict == triage.NoBottleneck, scopes == nil:
		v.Charts = TextCharts // No picture is made, or nobody knows whether one may come.
	case slices.Contains(*scopes, "files:write") && !n.learned.noUpload.Load():
		v.Charts = NoCharts
	case n.learned.noNative.Load():
		v.Charts = TextCharts
	default:
		v.Charts = NativeCharts
	}
	return v
}
