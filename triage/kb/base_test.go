package kb_test

import (
	"os"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"

	"vllm-triage/triage/kb"
)

// sound is a cause that Load takes; each case below breaks one thing in it.
const sound = `
id: site_cause
axis: bottleneck
kind: service
title: A cause of one site
mechanism: Something of this site.
sources: [runbook of the site]
evidence:
  - id: queue
    signal: wait_share
    feature: level
    "no": 0.1
    "yes": 0.5
    for: 2
    against: -1
    family: queue
    say: "{during} of all requests wait (before {before})"
actions:
  - id: look
    text: "Look at {busiest_replica}: {waiting} wait"
`

// TestLoadRefuses has one bad file for each rule, with the message that its author reads.
func TestLoadRefuses(t *testing.T) {
	t.Parallel()
	const in = "causes/site_cause.yaml: "
	edit := func(old, replacement string) string {
		out := strings.Replace(sound, old, replacement, 1)
		if out == sound {
			panic("nothing to edit: " + old)
		}
		return out
	}
	for _, c := range []struct {
		name, file, content, want string
	}{
		{"unknown key", "", edit("sources:", "source:"), in + "yaml: construct errors: line 7: field source not found in type kb.Cause"},
		{"empty file", "", "", in + "file is empty"},
		{"second document", "", sound + "---\nid: other\n", in + "file holds a second YAML document"},
		{"id and file name", "causes/other.yaml", sound, `causes/other.yaml: id "site_cause" does not match the file's name`},
		{"id spelling", "causes/Site.yaml", edit("id: site_cause", "id: Site"), `causes/Site.yaml: cause "Site": id must be snake_case`},
		{"title", "", edit("title: A cause of one site\n", ""), in + `cause "site_cause": title and mechanism are needed`},
		{"axis", "", edit("axis: bottleneck", "axis: symptom"), in + `cause "site_cause": axis "symptom" is not bottleneck or trigger`},
		{
			"kind of a bottleneck", "", edit("kind: service", "kind: workload"),
			in + `cause "site_cause": kind "workload" is not saturation, service or quiet`,
		},
		{
			"kind of a trigger", "", edit("axis: bottleneck", "axis: trigger"),
			in + `cause "site_cause": kind "service" is not workload, change or none`,
		},
		{"place", "", sound + "place: rack\n", in + `cause "site_cause": place "rack" is not scope or replicas`},
		{
			"where", "", sound + "where: ttft\n",
			in + `cause "site_cause": where "ttft" is not running, waiting, kv_usage, itl, load or up`,
		},
		{"needs", "", sound + "needs: [gpu_joy]\n", in + `cause "site_cause": signal "gpu_joy" is unknown`},
		{"panels", "", sound + "panels: [gpu_joy]\n", in + `cause "site_cause": signal "gpu_joy" is unknown`},
		{"explains", "", sound + "explains: [gpu_joy]\n", in + `cause "site_cause": explains: signal "gpu_joy" is unknown`},
		{"parents", "", sound + "parents: [moon_phase]\n", in + `cause "moon_phase" is unknown`},
		{"with", "", sound + "with: {moon_phase: 1}\n", in + `cause "moon_phase" is unknown`},
		{
			"alert pattern", "", sound + "alerts: {\".*(\": 1}\n",
			in + "cause \"site_cause\": alerts: error parsing regexp: missing closing ): `(?i)^(?:.*()$`",
		},
		{
			"required signal", "", sound + "requires:\n  - {signal: gpu_joy, feature: level, min: 1}\n",
			in + `cause site_cause requires: signal "gpu_joy" is unknown`,
		},
		{
			"required feature", "", sound + "requires:\n  - {signal: waiting, feature: mood, min: 1}\n",
			in + `cause site_cause requires: feature "mood" is unknown`,
		},
		{
			"required bounds", "", sound + "requires:\n  - {signal: waiting, feature: level}\n",
			in + `cause site_cause requires: min or max is needed`,
		},
		{
			"signal of evidence", "", edit("signal: wait_share", "signal: gpu_joy"),
			in + `cause site_cause evidence queue: signal "gpu_joy" is unknown`,
		},
		{
			"feature of evidence", "", edit("feature: level", "feature: mood"),
			in + `cause site_cause evidence queue: feature "mood" is unknown`,
		},
		{
			"thresholds missing", "", edit("    \"yes\": 0.5\n", ""),
			in + "cause site_cause evidence queue: no and yes are needed and must differ",
		},
		{
			"thresholds equal", "", edit(`"yes": 0.5`, `"yes": 0.1`),
			in + "cause site_cause evidence queue: no and yes are needed and must differ",
		},
		{"weight", "", edit("for: 2", "for: 9"), in + "cause site_cause evidence queue: weight 9 is beyond ±4"},
		{
			"signs", "", edit("against: -1", "against: 1"),
			in + "cause site_cause evidence queue: for must not be negative, against not positive",
		},
		{"family", "", edit("    family: queue\n", ""), in + "cause site_cause evidence queue: family is missing"},
		{
			"sentence", "", edit(`    say: "{during} of all requests wait (before {before})"`+"\n", ""),
			in + "cause site_cause evidence queue: say is missing",
		},
		{
			"figure of a sentence", "", edit("{during} of", "{percent} of"),
			in + `cause "site_cause" evidence queue: {percent} is neither a figure nor a signal`,
		},
		{
			"second signal of a sentence", "", edit("{during} of", "{during1} of"),
			in + `cause "site_cause" evidence queue: {during1} is neither a figure nor a signal`,
		},
		{
			"guard", "", edit("    for: 2\n", "    for: 2\n    when: [{signal: waiting, feature: level}]\n"),
			in + "cause site_cause evidence queue when: min or max is needed",
		},
		{
			"evidence id", "", edit("  - id: queue\n    signal", "  - signal"),
			in + `cause "site_cause": evidence 0: id "" is missing or not unique`,
		},
		{"action", "", edit("  - id: look\n    text", "  - text"), in + `cause "site_cause": an action needs id and text`},
		{
			"figure of an action", "", edit("{waiting} wait", "{during} wait"),
			in + `cause "site_cause" action look: {during} is neither a figure nor a signal`,
		},
		{
			"trigger of an action", "", edit("  - id: look\n", "  - id: look\n    triggers: [healthy]\n"),
			in + `cause "site_cause": action "look": "healthy" is no trigger`,
		},
		{
			"guard of an action", "", edit("  - id: look\n", "  - id: look\n    when: [{signal: gpu_joy, feature: level, min: 1}]\n"),
			in + `cause site_cause action look: signal "gpu_joy" is unknown`,
		},
		{
			"example without a time", "", sound + "examples:\n  - {name: one, base: v1}\n",
			in + `cause "site_cause": example "one": at is missing`,
		},
		{
			"example without a name", "", sound + "examples:\n  - {at: 40m, base: v1}\n",
			in + `cause "site_cause": example name "" is missing or not unique`,
		},
		{
			"base of an example", "", sound + "examples:\n  - {name: one, at: 40m, base: v9}\n",
			in + `example "one": base "v9" is unknown`,
		},
		{
			"scope of an example", "", sound + "examples:\n  - {name: one, at: 40m, base: v1, alert: {a: b}, scope: {a: b}}\n",
			in + `cause "site_cause": example "one": an alert brings its own scope`,
		},
		{
			"first of an example", "", sound + "examples:\n  - {name: one, at: 40m, base: v1, expect: {first: none}}\n",
			in + `cause "site_cause": example "one": expected first "none" is no bottleneck`,
		},
		{
			"trigger of an example", "", sound + "examples:\n  - {name: one, at: 40m, base: v1, expect: {trigger: healthy}}\n",
			in + `cause "site_cause": example "one": expected trigger "healthy" is no trigger`,
		},
		{
			"forbidden of an example", "", sound + "examples:\n  - {name: one, at: 40m, base: v1, expect: {never: [moon_phase]}}\n",
			in + `cause "site_cause": example "one": never names unknown cause "moon_phase"`,
		},
		{
			"expected and forbidden", "",
			sound + "examples:\n  - {name: one, at: 40m, base: v1, expect: {first: healthy, never: [healthy]}}\n",
			in + `cause "site_cause": example "one": "healthy" is expected and forbidden`,
		},
		{"schema of the signals", "signals.yaml", "schema: 2\n", "signals.yaml: schema is 2, want 1"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			file := c.file
			if file == "" {
				file = "causes/site_cause.yaml"
			}
			_, err := kb.Load(fstest.MapFS{file: {Data: []byte(c.content)}})
			require.EqualError(t, err, c.want)
		})
	}
}

// TestLoadReportsAllMistakes says everything at once.
func TestLoadReportsAllMistakes(t *testing.T) {
	t.Parallel()
	_, err := kb.Load(fstest.MapFS{
		"causes/site_cause.yaml": {Data: []byte(strings.Replace(sound, "kind: service", "kind: odd\nneeds: [gpu_joy]", 1))},
		"causes/healthy.yaml":    {Data: []byte(strings.Replace(sound, "id: site_cause", "id: healthy", 1) + "place: rack\n")},
	})
	require.ErrorContains(t, err, `causes/healthy.yaml: cause "healthy": place "rack" is not scope or replicas`)
	require.ErrorContains(t, err, `causes/site_cause.yaml: cause "site_cause": kind "odd" is not saturation, service or quiet`)
	require.ErrorContains(t, err, `signal "gpu_joy" is unknown`)
}

// TestSignalRules has one bad signal for each rule.
func TestSignalRules(t *testing.T) {
	t.Parallel()
	head := "schema: 1\nsignals:\n"
	for _, c := range []struct{ name, content, want string }{
		{"twice", `  - {id: a, title: a, unit: count, class: state, derived: a}
  - {id: a, title: a, unit: count, class: state, derived: a}`, `signals.yaml: signal "a" stands twice`},
		{"spelling", "  - {id: A, title: a, unit: count, class: state, derived: a}", `signal "A": id must be snake_case`},
		{"title", "  - {id: a, unit: count, class: state, derived: a}", `signal "a": title is missing`},
		{"unit", "  - {id: a, title: a, unit: miles, class: state, derived: a}", `signal "a": unit "miles" is unknown`},
		{"class", "  - {id: a, title: a, unit: count, class: odd, derived: a}", `signal "a": class "odd" is unknown`},
		{"read", "  - {id: a, title: a, unit: count, class: state, names: [a], fold: sum}", `signal "a": read is missing`},
		{
			"fold", "  - {id: a, title: a, unit: count, class: state, names: [a], read: metric, fold: median}",
			`signal "a": fold "median" is not sum, avg, max, min, count or p95`,
		},
		{
			"scope", "  - {id: a, title: a, unit: count, class: state, names: [a], read: metric, fold: sum, scope: rack}",
			`signal "a": scope "rack" is not model, target, device or pod`,
		},
		{"kind", "  - {id: a, title: a, unit: count, class: state}", `signal "a": exactly one of names, ratio and derived must be set`},
		{"floor", "  - {id: a, title: a, unit: count, class: state, derived: a, floor: -1}", `signal "a": floor is negative`},
		{"needs", "  - {id: a, title: a, unit: count, class: state, derived: a, needs: [b]}", `signal "a": needs unknown signal "b"`},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			_, err := kb.Load(fstest.MapFS{"signals.yaml": {Data: []byte(head + c.content + "\n")}})
			require.ErrorContains(t, err, c.want)
		})
	}
}

// TestLoadOverride lays a directory over the embedded files: a new cause is added, one of the same name replaced, and
// files that are none of the knowledge base's are left alone.
func TestLoadOverride(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	root, err := os.OpenRoot(dir)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, root.Close()) })
	require.NoError(t, root.Mkdir("causes", 0o700))
	require.NoError(t, root.WriteFile("causes/site_cause.yaml", []byte(sound), 0o600))
	require.NoError(t, root.WriteFile("causes/healthy.yaml", []byte(strings.Replace(sound, "id: site_cause", "id: healthy", 1)), 0o600))
	require.NoError(t, root.WriteFile("causes/README.md", []byte("not YAML"), 0o600))

	b, err := kb.Load(os.DirFS(dir))
	require.NoError(t, err)
	added, ok := b.Cause("site_cause")
	require.True(t, ok)
	require.Equal(t, "causes/site_cause.yaml", added.File)
	replaced, _ := b.Cause("healthy")
	require.Equal(t, "A cause of one site", replaced.Title)
	def := kb.Default()
	require.Len(t, b.Causes, len(def.Causes)+1)
	require.NotEqual(t, def.Hash, b.Hash, "the hash names the content")
}
