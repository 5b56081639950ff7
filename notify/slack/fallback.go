package slack

import (
	"strconv"
	"strings"

	"vllm-triage/notify"
)

// fallback writes the message without blocks: a text for notifications, and the whole for when the blocks are refused.
// Both are escaped; Slack parses them as mrkdwn.
func (p *page) fallback(m notify.Message) (text, whole string) {
	switch m.Kind {
	case notify.KindDetails:
		text = escapeFormatted(p.words.Text("ui.label.details") + " · " + m.Headline)
		whole = p.wholeDetails(m)
	case notify.KindChange:
		if m.Change != nil {
			text = escapeFormatted(m.Change.Text)
			whole = escapeLines(append([]string{m.Change.Text}, m.Change.Because...))
		}
	case notify.KindResolved:
		out := []string{emoji(m) + " " + m.Headline, m.StatusText}
		for _, c := range m.Compare {
			out = append(out, c.Label+": "+c.During+" → "+c.Now)
		}
		text, whole = escapeFormatted(join(" — ", m.Headline, m.StatusText)), escapeLines(out)
	case notify.KindNote:
		if m.Note != nil {
			text = escapeLines(m.Note.Lines)
			if userID.MatchString(m.Note.Actor) {
				text = "<@" + m.Note.Actor + "> " + text
			}
			whole = text
		}
	default:
		text = emoji(m) + " " + escapeFormatted(m.Summary) // What a locked phone shows.
		whole = p.wholeCard(m)
	}
	if text == "" {
		text = "–"
	}
	if whole == "" {
		whole = text
	}
	return cut(text, maxFallback), cut(whole, maxFallback)
}

func (p *page) wholeCard(m notify.Message) string {
	out := []string{emoji(m) + " " + m.Headline, m.Late, m.Lead, m.Bottleneck.Explain, m.ChangedBy}
	out = append(out, m.Impact...)
	for _, c := range m.Compare {
		out = append(out, c.Label+": "+c.During+" → "+c.Now)
	}
	for i, s := range m.Steps {
		step := strconv.Itoa(i+1) + ". " + s.Text
		if s.Option != "" {
			step += " " + s.Option
		}
		out = append(out, step)
	}
	if m.Blocked != nil && m.Blocked.Query != nil {
		out = append(out, p.words.Text("ui.label.decides")+": "+m.Blocked.Query.PromQL)
	}
	out = append(out, m.RunnerUp, m.AlertsText)
	whole := escapeLines(out)
	if call := mention(m.Mention); call != "" {
		whole = call + "\n" + whole
	}
	for _, l := range []struct{ label, address string }{
		{"ui.button.incident", m.Links.Incident}, {"ui.button.runbook", m.Links.Runbook},
	} {
		if l.address != "" && len(whole)+len(l.address) < maxFallback-100 {
			whole += "\n<" + escape(l.address) + "|" + escapeFormatted(p.words.Text(l.label)) + ">"
		}
	}
	return whole
}

func (p *page) wholeDetails(m notify.Message) string {
	out := []string{p.words.Text("ui.label.details") + " · " + m.Headline}
	for _, e := range m.Evidence {
		out = append(out, join(" ", e.Label, e.Reading, e.Text))
	}
	for _, r := range m.RuledOut {
		out = append(out, p.words.Text("ui.label.ruled_out")+": "+join(": ", r.Title, r.Why))
	}
	for _, r := range m.Gaps {
		out = append(out, p.words.Text("ui.label.gaps")+": "+join(": ", r.Title, r.Why))
	}
	return escapeLines(out)
}

// escapeLines escapes each line and leaves out what does not fit, whole lines at a time.
func escapeLines(texts []string) string {
	var b strings.Builder
	for _, s := range texts {
		if s == "" {
			continue
		}
		s = escapeFormatted(s)
		if notify.Runes(b.String())+notify.Runes(s) > maxFallback-200 {
			b.WriteString("\n…")
			break
		}
		if b.Len() > 0 {
			b.WriteByte('\n')
		}
		b.WriteString(s)
	}
	return b.String()
}
