package config_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"vllm-triage/config"
)

const routed = minimal + `
slack: {bot_token: xoxb-1, channel: "#all", mention: here, timezone: Europe/Paris}
routes:
  - match: {receiver: archive}
    channel: "#archive"
    mode: shadow
    continue: true
  - match: {severity: critical}
    match_re: {namespace: "prod|live"}
    channel: "#prod"
    language: ko
    timezone: Asia/Seoul
    mention: none
    edit: false
    thread: false
    broadcast_resolve: true
  - match: {namespace: dev}
    mode: "off"
`

func TestTargets(t *testing.T) {
	t.Parallel()
	c := parse(t, routed)
	all := config.Target{
		Channel: "#all", Language: "en", Timezone: "Europe/Paris", Mention: "here", Mode: config.Live, Edit: true, Thread: true,
	}
	prod := config.Target{
		Channel: "#prod", Language: "ko", Timezone: "Asia/Seoul", Mode: config.Live, BroadcastResolve: true,
	}
	archive := all
	archive.Channel, archive.Mode = "#archive", config.Shadow
	off := all
	off.Mode = config.Off
	type labels = map[string]string
	for _, tc := range []struct {
		name   string
		alerts []labels
		want   []config.Target
	}{
		{"no alerts", nil, []config.Target{all}},
		{"nothing matches", []labels{{"severity": "warning"}}, []config.Target{all}},
		{"one alert matches", []labels{{"a": "b"}, {"severity": "critical", "namespace": "prod"}}, []config.Target{prod}},
		{"matchers on different alerts", []labels{{"severity": "critical"}, {"namespace": "prod"}}, []config.Target{all}},
		{"regexp is anchored", []labels{{"severity": "critical", "namespace": "prod-2"}}, []config.Target{all}},
		{"first wins", []labels{{"severity": "critical", "namespace": "live"}, {"namespace": "dev"}}, []config.Target{prod}},
		{"off", []labels{{"namespace": "dev"}}, []config.Target{off}},
		{"continue", []labels{{"receiver": "archive", "severity": "critical", "namespace": "live"}}, []config.Target{archive, prod}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			require.Empty(t, cmp.Diff(tc.want, c.Targets(tc.alerts)))
		})
	}
	require.Equal(t, "Asia/Seoul", prod.Location().String())
	require.Equal(t, "UTC", config.Target{Timezone: "nowhere"}.Location().String())
}

func TestTargetWithoutSlackIsShadow(t *testing.T) {
	t.Parallel()
	require.Equal(t, config.Shadow, parse(t, minimal).Targets(nil)[0].Mode)
}

func TestDescribe(t *testing.T) {
	t.Parallel()
	c := parse(t, routed)
	require.Equal(t,
		`{receiver="archive"} -> #archive, shadow, language en, times in Europe/Paris, calls here, then the next routes too`,
		c.Describe(c.Routes[0]))
	require.Equal(t,
		`{severity="critical", namespace=~"prod|live"} -> #prod, live, language ko, times in Asia/Seoul`,
		c.Describe(c.Routes[1]))
	require.Equal(t, `{} -> #all, live, language en, times in Europe/Paris, calls here`, c.Describe(config.Route{}))
}

func TestRegexp(t *testing.T) {
	t.Parallel()
	re, err := config.NewRegexp("a|b")
	require.NoError(t, err)
	require.Equal(t, "a|b", re.String())
	require.True(t, re.MatchString("b"))
	require.False(t, re.MatchString("ab"))
	require.Empty(t, config.Regexp{}.String())
}

func TestBytes(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]config.Bytes{"0": 0, "17": 17, "2MiB": 2 << 20, "512 KiB": 512 << 10, "1GiB": 1 << 30, "5B": 5} {
		got, err := config.ParseBytes(text)
		require.NoError(t, err)
		require.Equal(t, want, got)
		again, err := config.ParseBytes(got.String())
		require.NoError(t, err)
		require.Equal(t, want, again)
	}
	for _, text := range []string{"", "-1", "1.5MiB", "2MB", "99999999999999999GiB", "1TiB"} {
		_, err := config.ParseBytes(text)
		require.Error(t, err)
	}
}
