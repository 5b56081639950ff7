package chart_test

import (
	"bytes"
	"flag"
	"image"
	"image/color"
	"image/draw"
	"image/png"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"vllm-triage/notify"
	"vllm-triage/notify/chart"
	"vllm-triage/notify/locale"
	"vllm-triage/notify/notifytest"
	"vllm-triage/triage"
)

var update = flag.Bool("update", false, "rewrite golden files")

var options = chart.Options{Language: "en", Location: notifytest.Seoul()}

func TestGolden(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"kv-longer-outputs", "kv-longer-outputs.ko", "resolved", "resolved.ko", "no-baseline", "hostile"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			name, language, _ := strings.Cut(name, ".")
			c := notifytest.Named(name, "en")
			options := chart.Options{Language: language, Location: notifytest.Seoul()}
			if language != "" {
				name += "." + language
			}
			got, err := chart.PNG(c.Report, options)
			require.NoError(t, err)
			again, err := chart.PNG(c.Report, options)
			require.NoError(t, err)
			require.True(t, bytes.Equal(got, again), "the same report gives the same bytes")
			path := filepath.Join("testdata", name+".png")
			if *update {
				require.NoError(t, os.MkdirAll("testdata", 0o755))
				require.NoError(t, os.WriteFile(path, got, 0o600))
			}
			want, err := os.ReadFile(path)
			require.NoError(t, err)
			same(t, want, got)
		})
	}
}

// same compares pixels, allowing for rounding: processors differ in the last bit of floating point.
func same(t *testing.T, want, got []byte) {
	t.Helper()
	a, b := pixels(t, want), pixels(t, got)
	require.Equal(t, a.Rect, b.Rect)
	differ := 0
	for i, v := range a.Pix {
		if max(v, b.Pix[i])-min(v, b.Pix[i]) > 9 {
			differ++
		}
	}
	require.Zero(t, differ)
}

func pixels(t *testing.T, b []byte) *image.RGBA {
	t.Helper()
	img, err := png.Decode(bytes.NewReader(b))
	require.NoError(t, err)
	out := image.NewRGBA(img.Bounds())
	draw.Draw(out, out.Rect, img, image.Point{}, draw.Src)
	return out
}

func TestThePictureIsReadableOnAPhone(t *testing.T) {
	t.Parallel()
	b, err := chart.PNG(notifytest.KVLongerOutputs(), options)
	require.NoError(t, err)
	img, err := png.Decode(bytes.NewReader(b))
	require.NoError(t, err)
	require.Equal(t, 960, img.Bounds().Dx(), "480 points at twice the density")
	require.Less(t, img.Bounds().Dy(), 1100)
	require.Less(t, len(b), 200_000)
	white := color.RGBA{0xff, 0xff, 0xff, 0xff}
	require.Equal(t, white, color.RGBAModel.Convert(img.At(10, 10)), "a background of its own, in dark chats too")
}

// TestEveryWordOfACatalogueCanBeDrawn looks for characters that the built-in fonts lack: they would show as "?".
func TestEveryWordOfACatalogueCanBeDrawn(t *testing.T) {
	t.Parallel()
	for _, language := range locale.Languages() {
		words := locale.For(language)
		for _, key := range words.Keys() {
			if strings.HasPrefix(key, "signal.") || strings.HasPrefix(key, "unit.") || strings.HasPrefix(key, "ui.picture.") {
				require.Empty(t, chart.Undrawable(words.Text(key)), key)
			}
		}
	}
	require.Equal(t, "漢", chart.Undrawable("KV 캐시 漢"))
}

func TestWhatAlertedComesFirst(t *testing.T) {
	t.Parallel()
	r := notifytest.KVLongerOutputs()
	r.Panels = append(slices.Clone(r.Panels[1:]), r.Panels[0]) // As the engine puts them.
	require.True(t, strings.HasPrefix(chart.AltText(r, options), "Charts of Waiting requests 0 → 59, KV cache usage"))
	m := notify.NewMessage(r, notifytest.Options("en"))
	require.Equal(t, "Waiting requests", m.Panels[0].Label)
	require.Equal(t, "KV cache usage", m.Panels[1].Label)
}

func TestNothingToDraw(t *testing.T) {
	t.Parallel()
	nan := math.NaN()
	r := triage.Report{Panels: []triage.Panel{
		{Signal: "a", StepMS: 1000}, {Signal: "b", StepMS: 1000, Values: []*float64{nil, &nan}}, {Signal: "c", Values: []*float64{new(float64)}},
	}}
	_, err := chart.PNG(r, options)
	require.ErrorIs(t, err, chart.ErrNothing)
	require.Empty(t, chart.AltText(r, options))
	_, err = chart.Picture(r, notify.Message{}, options)
	require.ErrorIs(t, err, chart.ErrNothing)
}

func TestAltTextSaysWhatIsSeen(t *testing.T) {
	t.Parallel()
	r := notifytest.KVLongerOutputs()
	require.Equal(t, "Charts of Waiting requests 0 → 59, KV cache usage 3.5 % → 96 %, Preemptions 0/s → 0.72/s, "+
		"Output length 96.3 tok → 1.5k tok from 13:29 KST to 14:09 KST; the baseline is shaded, onset and alert are marked.",
		chart.AltText(r, options))
	require.Contains(t, chart.AltText(r, chart.Options{Language: "ko", Location: notifytest.Seoul()}), "대기 요청")
}

func TestPicture(t *testing.T) {
	t.Parallel()
	r := notifytest.KVLongerOutputs()
	m := notify.NewMessage(r, notifytest.Options("ko"))
	p, err := chart.Picture(r, m, chart.Options{Language: "ko"})
	require.NoError(t, err)
	require.Equal(t, "KV 캐시 고갈 · demo (llm)", p.Title)
	require.Equal(t, "\x89PNG", string(p.PNG[:4]))
	require.Contains(t, p.AltText, "UTC")
	require.Equal(t, "vllm-triage.png", p.Filename)
}

func FuzzPNG(f *testing.F) {
	f.Add([]byte{})
	f.Add([]byte(notifytest.HostileText))
	f.Add(bytes.Repeat([]byte{3, 255, 1, 2}, 300))
	f.Fuzz(func(t *testing.T, data []byte) {
		r := notifytest.Fuzzed(data)
		b, err := chart.PNG(r, options)
		if err != nil {
			require.ErrorIs(t, err, chart.ErrNothing)
			return
		}
		_, err = png.Decode(bytes.NewReader(b))
		require.NoError(t, err)
		require.NotEmpty(t, chart.AltText(r, options))
	})
}

func TestExtremes(t *testing.T) {
	t.Parallel()
	v := func(xs ...float64) []*float64 {
		out := make([]*float64, len(xs))
		for i := range xs {
			out[i] = &xs[i]
		}
		return out
	}
	r := triage.Report{Panels: []triage.Panel{
		{Signal: "huge", StepMS: 1000, Values: v(-math.MaxFloat64, math.MaxFloat64)},
		{Signal: "one", StepMS: math.MaxInt64, Values: v(5)},
		{Signal: "negative", StepMS: 1000, Values: v(-3, -1, -2), Start: time.Unix(1, 0)},
		{Signal: "start_time", Unit: triage.Timestamp, StepMS: 1000, Values: v(1795928970, 1795928980)},
		{Signal: "fifth", StepMS: 1000, Values: v(1)},
	}}
	b, err := chart.PNG(r, options)
	require.NoError(t, err)
	img, err := png.Decode(bytes.NewReader(b))
	require.NoError(t, err)
	four := img.Bounds().Dy()
	r.Panels = r.Panels[:4]
	b, err = chart.PNG(r, options)
	require.NoError(t, err)
	img, err = png.Decode(bytes.NewReader(b))
	require.NoError(t, err)
	require.Equal(t, four, img.Bounds().Dy(), "four panels and no more")
}

func BenchmarkChart(b *testing.B) {
	r := notifytest.KVLongerOutputs()
	for _, language := range locale.Languages() {
		b.Run(language, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := chart.PNG(r, chart.Options{Language: language}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
