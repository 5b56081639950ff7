package chatops

import (
	"regexp"
	"strings"

	"vllm-triage/notify"
)

// maxCommand bounds the text of a slash command, in runes; what is longer is cut.
const maxCommand = 1000

// Slack sends <@U1|name>, <#C1|name>, <!subteam^S1|@name> and <https://host|label> for what people type, depending on the
// app's settings, and &amp; &lt; &gt; for the characters themselves.
var (
	bracketed = regexp.MustCompile(`<([^<>|]*)(?:\|([^<>]*))?>`)
	webScheme = regexp.MustCompile(`^(?:https?|mailto):/{0,2}`)
)

// typographic replaces what keyboards and phones make of plain characters.
var typographic = strings.NewReplacer(
	"“", `"`, "”", `"`, "„", `"`, "‟", `"`, "«", `"`, "»", `"`, "「", `"`, "」", `"`,
	"‘", `"`, "’", `"`, "‚", `"`, "‛", `"`, "＂", `"`,
	"—", "--", "–", "--", "−", "-", "‐", "-", "‑", "-",
	"＝", "=", "：", ":", "`", "", "…", "...",
)

var entities = strings.NewReplacer("&lt;", "<", "&gt;", ">", "&amp;", "&")

// normalise makes the text of a command what its author meant to type.
func normalise(text string) string {
	text = bracketed.ReplaceAllStringFunc(text, func(s string) string {
		m := bracketed.FindStringSubmatch(s)
		target, label := m[1], m[2]
		switch {
		case target == "":
			return ""
		case strings.HasPrefix(target, "@"), strings.HasPrefix(target, "#"), strings.HasPrefix(target, "!"):
			if label == "" {
				label = target[1:]
			}
			return strings.TrimLeft(label, "@#")
		case label != "":
			return label
		default:
			// A host that Slack took for a link: instance=<http://10.0.0.1:8000>.
			return strings.TrimSuffix(webScheme.ReplaceAllString(target, ""), "/")
		}
	})
	return notify.Clean(typographic.Replace(entities.Replace(text)), maxCommand)
}

// words splits a normalised text at spaces; what stands in double quotes stays together, without the quotes. Spaces around
// an equals sign do not split.
func words(text string) []string {
	var out []string
	var b strings.Builder
	inside, some := false, false
	flush := func() {
		if some {
			out = append(out, b.String())
		}
		b.Reset()
		some = false
	}
	for _, r := range text {
		switch {
		case r == '"':
			inside, some = !inside, true
		case r == ' ' && !inside:
			flush()
		default:
			b.WriteRune(r)
			some = true
		}
	}
	flush()
	return joinEquals(out)
}

// joinEquals makes "ns = prod", "ns= prod" and "ns =prod" one word.
func joinEquals(ws []string) []string {
	var out []string
	for _, w := range ws {
		if n := len(out) - 1; n >= 0 {
			key, open := strings.CutSuffix(out[n], "=")
			if isKey(key) && (open && !strings.Contains(w, "=") || !open && strings.HasPrefix(w, "=")) {
				out[n] += w
				continue
			}
		}
		out = append(out, w)
	}
	return out
}
