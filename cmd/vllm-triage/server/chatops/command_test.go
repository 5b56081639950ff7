package chatops_test

import (
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"vllm-triage/cmd/vllm-triage/server/chatops"
)

func zone(t testing.TB, name string) *time.Location {
	t.Helper()
	z, err := time.LoadLocation(name)
	require.NoError(t, err)
	return z
}

func at(t testing.TB, s string) time.Time {
	t.Helper()
	x, err := time.Parse(time.RFC3339, s)
	require.NoError(t, err)
	return x.UTC()
}

// typed is when the commands of the tests are typed: 14:30 in Seoul.
const typed = "2026-11-29T05:30:00Z"

func TestCommands(t *testing.T) {
	t.Parallel()
	type command = chatops.Command
	triage := chatops.Triage
	for text, want := range map[string]command{
		"":                         {Verb: triage},
		"   ":                      {Verb: triage},
		"llama-70b":                {Verb: triage, Model: "llama-70b"},
		"triage models":            {Verb: triage, Model: "models"},
		"meta-llama/Llama-3.1-70B": {Verb: triage, Model: "meta-llama/Llama-3.1-70B"},
		"llama for 30m":            {Verb: triage, Model: "llama", For: 30 * time.Minute},
		"llama last 2h":            {Verb: triage, Model: "llama", For: 2 * time.Hour},
		"llama for 1h30m":          {Verb: triage, Model: "llama", For: 90 * time.Minute},
		"llama for 30 minutes":     {Verb: triage, Model: "llama", For: 30 * time.Minute},
		"llama for 1.5h":           {Verb: triage, Model: "llama", For: 90 * time.Minute},
		"llama 최근 30분":             {Verb: triage, Model: "llama", For: 30 * time.Minute},
		"for 2시간 llama":            {Verb: triage, Model: "llama", For: 2 * time.Hour},
		// Seoul is nine hours ahead of UTC.
		"llama at 14:05":                 {Verb: triage, Model: "llama", At: at(t, "2026-11-29T05:05:00Z")},
		"llama at 14:05:30":              {Verb: triage, Model: "llama", At: at(t, "2026-11-29T05:05:30Z")},
		"llama at 2:05pm":                {Verb: triage, Model: "llama", At: at(t, "2026-11-29T05:05:00Z")},
		"llama at 2 pm":                  {Verb: triage, Model: "llama", At: at(t, "2026-11-29T05:00:00Z")},
		"llama at 23:50":                 {Verb: triage, Model: "llama", At: at(t, "2026-11-28T14:50:00Z")},
		"llama at yesterday 14:50":       {Verb: triage, Model: "llama", At: at(t, "2026-11-28T05:50:00Z")},
		"llama at 어제 14:50":              {Verb: triage, Model: "llama", At: at(t, "2026-11-28T05:50:00Z")},
		"llama at today 9:00":            {Verb: triage, Model: "llama", At: at(t, "2026-11-29T00:00:00Z")},
		"llama at 05:05z":                {Verb: triage, Model: "llama", At: at(t, "2026-11-29T05:05:00Z")},
		"llama at 05:05 UTC":             {Verb: triage, Model: "llama", At: at(t, "2026-11-29T05:05:00Z")},
		"llama at 2026-11-29T05:05Z":     {Verb: triage, Model: "llama", At: at(t, "2026-11-29T05:05:00Z")},
		"llama at 2026-11-29T05:05:07Z":  {Verb: triage, Model: "llama", At: at(t, "2026-11-29T05:05:07Z")},
		"llama at 2026-11-29t14:05+0900": {}, // Below: not understood.
		"llama at 2026-11-29T12:05+07:00": {
			Verb: triage, Model: "llama", At: at(t, "2026-11-29T05:05:00Z"),
		},
		"llama at 2026-11-29 14:05":            {Verb: triage, Model: "llama", At: at(t, "2026-11-29T05:05:00Z")},
		`llama at "2026-11-29 14:05"`:          {Verb: triage, Model: "llama", At: at(t, "2026-11-29T05:05:00Z")},
		"llama at 2026-11-29 05:05 UTC":        {Verb: triage, Model: "llama", At: at(t, "2026-11-29T05:05:00Z")},
		"llama at=14:05 for=10m":               {Verb: triage, Model: "llama", At: at(t, "2026-11-29T05:05:00Z"), For: 10 * time.Minute},
		"llama 10m ago":                        {Verb: triage, Model: "llama", At: at(t, "2026-11-29T05:20:00Z")},
		"llama 10분 전":                          {Verb: triage, Model: "llama", At: at(t, "2026-11-29T05:20:00Z")},
		"llama 14:05":                          {Verb: triage, Model: "llama", At: at(t, "2026-11-29T05:05:00Z")},
		"at 14:05 llama":                       {Verb: triage, Model: "llama", At: at(t, "2026-11-29T05:05:00Z")},
		"llama at now":                         {Verb: triage, Model: "llama"},
		"llama since 14:00":                    {Verb: triage, Model: "llama", For: 30 * time.Minute},
		"llama since 13:00 at 14:00":           {Verb: triage, Model: "llama", For: time.Hour, At: at(t, "2026-11-29T05:00:00Z")},
		"ns=prod instance=10.0.0.1:8000":       {Verb: triage, Namespace: "prod", Instance: "10.0.0.1:8000"},
		"llama namespace=prod pod=p cluster=c": {Verb: triage, Model: "llama", Namespace: "prod", Pod: "p", Cluster: "c"},
		"llama ns = prod":                      {Verb: triage, Model: "llama", Namespace: "prod"},
		"llama ns= prod":                       {Verb: triage, Model: "llama", Namespace: "prod"},
		"llama ns =prod":                       {Verb: triage, Model: "llama", Namespace: "prod"},
		"llama --ns=prod":                      {Verb: triage, Model: "llama", Namespace: "prod"},
		`model="a b" ns='c'`:                   {Verb: triage, Model: "a b", Namespace: "'c'"},
		"model=“a b”":                          {Verb: triage, Model: "a b"},
		"model=‘a b’":                          {Verb: triage, Model: "a b"},
		"`llama` for 5m":                       {Verb: triage, Model: "llama", For: 5 * time.Minute},
		"a=b":                                  {Verb: triage, Model: "a=b"},
		"llama --share":                        {Verb: triage, Model: "llama", Share: true},
		"llama —share":                         {Verb: triage, Model: "llama", Share: true},
		"--share llama":                        {Verb: triage, Model: "llama", Share: true},
		"llama share":                          {Verb: triage, Model: "llama", Share: true},
		"llama share=no":                       {Verb: triage, Model: "llama"},
		"llama 공유":                             {Verb: triage, Model: "llama", Share: true},
		// Slack turns names and addresses into links when should_escape is on.
		"instance=<http://10.0.0.1:8000|10.0.0.1:8000>": {Verb: triage, Instance: "10.0.0.1:8000"},
		"instance=<http://10.0.0.1:8000>":               {Verb: triage, Instance: "10.0.0.1:8000"},
		"<@U012AB3CD|llama>":                            {Verb: triage, Model: "llama"},
		"<#C012AB3CD|llama>":                            {Verb: triage, Model: "llama"},
		"a&amp;b":                                       {Verb: triage, Model: "a&b"},
		"models":                                        {Verb: chatops.Models},
		"LIST":                                          {Verb: chatops.Models},
		"모델":                                            {Verb: chatops.Models},
		"incidents":                                     {Verb: chatops.Incidents},
		"incidents llama firing":                        {Verb: chatops.Incidents, Model: "llama", Status: "firing"},
		"incident closed":                               {Verb: chatops.Incidents, Status: "resolved"},
		"incidents all --share":                         {Verb: chatops.Incidents, Share: true},
		"silences":                                      {Verb: chatops.Silences},
		"silences llama":                                {Verb: chatops.Silences, Model: "llama"},
		"explain":                                       {Verb: chatops.Explain},
		"explain kv_cache_exhaustion":                   {Verb: chatops.Explain, Subject: "kv_cache_exhaustion"},
		"why prefill bound":                             {Verb: chatops.Explain, Subject: "prefill bound"},
		"설명 KV 캐시 고갈":                                   {Verb: chatops.Explain, Subject: "KV 캐시 고갈"},
		"help":                                          {Verb: chatops.Help},
		"?":                                             {Verb: chatops.Help},
		"—help":                                         {Verb: chatops.Help},
		"help me":                                       {Verb: chatops.Help},
		"도움말":                                           {Verb: chatops.Help},
		// What may have been meant for a verb stays a model until it is known to be none.
		"modles":  {Verb: triage, Model: "modles", Likely: "models"},
		"explian": {Verb: triage, Model: "explian", Likely: "explain"},
	} {
		got, mistake := chatops.ParseCommand(text, at(t, typed), zone(t, "Asia/Seoul"))
		if want.Verb == "" {
			require.NotNil(t, mistake, text)
			continue
		}
		require.Nil(t, mistake, text)
		require.Empty(t, cmp.Diff(want, got), text)
	}
}

func TestMistakes(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]chatops.Mistake{
		"llama fro 30m":                  {Key: "mistake.word", Word: "fro", Near: []string{"for"}},
		"llama gpu":                      {Key: "mistake.word", Word: "gpu"},
		"llama --shra":                   {Key: "mistake.flag", Word: "--shra", Near: []string{"--share"}},
		"llama nmespace=prod":            {Key: "mistake.key", Word: "nmespace", Near: nil},
		"llama instnace=x":               {Key: "mistake.key", Word: "instnace", Near: []string{"instance="}},
		"llama for":                      {Key: "mistake.empty", Word: "for"},
		"llama for ages":                 {Key: "mistake.duration", Word: "ages"},
		"llama for 10s":                  {Key: "mistake.length", Word: "10s"},
		"llama for 3d":                   {Key: "mistake.length", Word: "72h0m0s"},
		"llama for 5m for 6m":            {Key: "mistake.twice", Word: "for"},
		"llama model=other":              {Key: "mistake.twice", Word: "model"},
		"llama ns=a ns=b":                {Key: "mistake.twice", Word: "ns"},
		"llama ns=":                      {Key: "mistake.empty", Word: "ns"},
		"llama at noon":                  {Key: "mistake.time", Word: "noon"},
		"llama at 25:00":                 {Key: "mistake.time", Word: "25:00"},
		"llama at 13pm":                  {Key: "mistake.time", Word: "13pm"},
		"llama at 14:05 at 14:06":        {Key: "mistake.twice", Word: "at"},
		"llama at 2026-11-29T05:35Z":     {Key: "mistake.future", Word: "2026-11-29T05:35Z"},
		"llama at today 23:00":           {Key: "mistake.future", Word: "today 23:00"},
		"llama at 2020-01-01T00:00Z":     {Key: "mistake.old", Word: "2020-01-01T00:00Z"},
		"llama since 14:00 for 5m":       {Key: "mistake.both", Word: "since"},
		"llama since 14:20 at 14:10":     {Key: "mistake.future", Word: "since"},
		"llama at 2026-11-29t14:05+0900": {Key: "mistake.time", Word: "2026-11-29t14:05+0900"},
	} {
		_, mistake := chatops.ParseCommand(text, at(t, typed), zone(t, "Asia/Seoul"))
		require.NotNil(t, mistake, text)
		if want.Key == "mistake.key" && want.Near == nil {
			mistake.Near = nil
		}
		require.Empty(t, cmp.Diff(want, *mistake), text)
		require.NotEmpty(t, mistake.Error())
	}
}

func TestTimesFollowTheAuthorsZone(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{
		"UTC": "2026-11-28T14:05:00Z", "Asia/Seoul": "2026-11-29T05:05:00Z", "America/New_York": "2026-11-28T19:05:00Z",
		"Asia/Kathmandu": "2026-11-28T08:20:00Z",
	} {
		c, mistake := chatops.ParseCommand("m at 14:05", at(t, typed), zone(t, name))
		require.Nil(t, mistake)
		require.Equal(t, at(t, want), c.At, name)
	}
}

func FuzzParseCommand(f *testing.F) {
	for _, s := range []string{
		"", "llama for 30m at 14:05 --share", "explain kv", "ns=“a b” instance=<http://h:1|h:1>", "at yesterday 25:00", "for for for",
		"\xff\x00=\"", "model = = =", "<<|>>", "9999999999h", "at 9999-12-31 23:59:59 UTC", "since 30m ago", strings.Repeat("a ", 900),
	} {
		f.Add(s)
	}
	now, seoul := time.Date(2026, 11, 29, 5, 30, 0, 0, time.UTC), zone(f, "Asia/Seoul")
	f.Fuzz(func(t *testing.T, text string) {
		c, mistake := chatops.ParseCommand(text, now, seoul)
		if mistake != nil {
			require.True(t, strings.HasPrefix(mistake.Key, "mistake."))
			require.LessOrEqual(t, len(mistake.Near), 3)
			return
		}
		require.Contains(t, chatops.Verbs(), c.Verb)
		require.False(t, c.At.After(now), "nothing later than now can be asked about")
		require.True(t, c.For == 0 || c.For >= time.Minute && c.For <= 24*time.Hour)
		for _, s := range []string{c.Model, c.Namespace, c.Instance, c.Pod, c.Cluster, c.Subject} {
			require.True(t, utf8.ValidString(s))
			require.LessOrEqual(t, utf8.RuneCountInString(s), 1000)
			require.NotContains(t, s, "\n")
		}
	})
}
