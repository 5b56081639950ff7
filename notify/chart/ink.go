package chart

import (
	_ "embed" // The Korean font.
	"image"
	"image/color"
	"image/draw"
	"math"
	"sync"

	"golang.org/x/image/font"
	"golang.org/x/image/font/gofont/gobold"
	"golang.org/x/image/font/gofont/goregular"
	"golang.org/x/image/font/opentype"
	"golang.org/x/image/font/sfnt"
	"golang.org/x/image/math/fixed"
	"golang.org/x/image/vector"
)

// density is how many pixels one unit of the layout has: phones show twice as many as they used to.
const density = 2

// The colours. Contrast of text on the background is above 5 to 1.
var (
	paper     = color.RGBA{0xff, 0xff, 0xff, 0xff}
	frame     = color.RGBA{0xd9, 0xd9, 0xdd, 0xff}
	text      = color.RGBA{0x1d, 0x1c, 0x1d, 0xff}
	softText  = color.RGBA{0x5c, 0x5c, 0x62, 0xff}
	gridLine  = color.RGBA{0xe4, 0xe4, 0xe8, 0xff}
	baseShade = color.RGBA{0xe9, 0xef, 0xf6, 0xff}
	onsetInk  = color.RGBA{0xd9, 0x7a, 0x06, 0xff}
	alertInk  = color.RGBA{0xc8, 0x1e, 0x3c, 0xff}
	endInk    = color.RGBA{0x1a, 0x7f, 0x4b, 0xff}
)

// roleInk is the colour of a panel's line.
func roleInk(role string) color.RGBA {
	switch role {
	case "alert":
		return color.RGBA{0x8f, 0x1d, 0x5c, 0xff}
	case "trigger":
		return color.RGBA{0xa2, 0x58, 0x08, 0xff}
	default:
		return color.RGBA{0x12, 0x64, 0xa3, 0xff}
	}
}

// hangul has the Korean syllables, which the Go fonts lack; see hangul.LICENSE.
//
//go:embed hangul.otf
var hangul []byte

// The fonts are parsed once and when they are needed; they are embedded and a test finds broken ones.
var (
	regular = sync.OnceValue(func() *opentype.Font { return parse(goregular.TTF) })
	bold    = sync.OnceValue(func() *opentype.Font { return parse(gobold.TTF) })
	korean  = sync.OnceValue(func() *opentype.Font { return parse(hangul) })
)

func parse(ttf []byte) *opentype.Font {
	f, err := opentype.Parse(ttf)
	if err != nil {
		panic(err)
	}
	return f
}

// pen writes text of one size. It is not safe for concurrent use.
type pen struct {
	size  float64
	fonts [2]func() *opentype.Font // The first that has a character writes it.
	made  [2]font.Face
	buf   sfnt.Buffer
}

func newPen(latin func() *opentype.Font, size float64) *pen {
	return &pen{size: size, fonts: [2]func() *opentype.Font{latin, korean}}
}

// face is one of the fonts in the pen's size.
func (p *pen) face(i int) font.Face {
	if p.made[i] == nil {
		face, err := opentype.NewFace(p.fonts[i](), &opentype.FaceOptions{Size: p.size * density, DPI: 72, Hinting: font.HintingFull})
		if err != nil {
			panic(err) // Only for sizes that are not positive.
		}
		p.made[i] = face
	}
	return p.made[i]
}

// which is the font that has a character.
func (p *pen) which(r rune) (int, bool) {
	for i, f := range p.fonts {
		if glyph, err := f().GlyphIndex(&p.buf, r); err == nil && glyph != 0 {
			return i, true
		}
	}
	return 0, false
}

// stretch is a piece of text in one font.
type stretch struct {
	face font.Face
	text string
}

// stretches splits a text by font.
func (p *pen) stretches(s string) []stretch {
	var out []stretch
	begin, current := 0, 0
	for at, r := range s {
		if i, _ := p.which(r); i != current {
			if at > begin {
				out = append(out, stretch{p.face(current), s[begin:at]})
			}
			begin, current = at, i
		}
	}
	if begin < len(s) {
		out = append(out, stretch{p.face(current), s[begin:]})
	}
	return out
}

// clean replaces characters that no font has, a run of them by one question mark.
func (p *pen) clean(s string) string {
	out := make([]rune, 0, len(s))
	missing := false
	for _, r := range s {
		if _, ok := p.which(r); !ok {
			if !missing {
				out = append(out, '?')
			}
			missing = true
			continue
		}
		missing = false
		out = append(out, r)
	}
	return string(out)
}

// width is the length of a text in pixels.
func (p *pen) width(s string) int {
	var sum fixed.Int26_6
	for _, x := range p.stretches(s) {
		sum += font.MeasureString(x.face, x.text)
	}
	return sum.Ceil()
}

// fit shortens a text to at most limit pixels.
func (p *pen) fit(s string, limit int) string {
	s = p.clean(s)
	if p.width(s) <= limit {
		return s
	}
	runes := []rune(s)
	for len(runes) > 0 && p.width(string(runes)+"…") > limit {
		runes = runes[:len(runes)-1]
	}
	return string(runes) + "…"
}

// write draws a text with its baseline at y. Align is 0 for left, 0.5 for centred, 1 for right of x.
func (p *pen) write(dst draw.Image, x, y int, align float64, c color.Color, s string) {
	x -= int(math.Round(float64(p.width(s)) * align))
	d := font.Drawer{Dst: dst, Src: image.NewUniform(c), Dot: fixed.P(x, y)}
	for _, x := range p.stretches(s) {
		d.Face = x.face
		d.DrawString(x.text)
	}
}

func fill(dst draw.Image, r image.Rectangle, c color.Color) {
	draw.Draw(dst, r, image.NewUniform(c), image.Point{}, draw.Src)
}

// vertical draws a line of that many pixels, dashed if dash is not 0.
func vertical(dst draw.Image, x, top, bottom, width, dash int, c color.Color) {
	if dash == 0 {
		fill(dst, image.Rect(x, top, x+width, bottom), c)
		return
	}
	for y := top; y < bottom; y += 2 * dash {
		fill(dst, image.Rect(x, y, x+width, min(y+dash, bottom)), c)
	}
}

type point struct{ x, y float32 }

// stroke draws a line through points in a box; the rasteriser is as small as the box. Coordinates are relative to it.
func stroke(z *vector.Rasterizer, dst draw.Image, box image.Rectangle, points []point, width float32, c color.Color) {
	z.Reset(box.Dx(), box.Dy())
	for i, p := range points {
		dot(z, p, width/2)
		if i > 0 {
			segment(z, points[i-1], p, width/2)
		}
	}
	z.Draw(dst, box, image.NewUniform(c), image.Point{})
}

// segment adds a rectangle along a line. All shapes turn the same way, so where they overlap the ink stays solid.
func segment(z *vector.Rasterizer, a, b point, half float32) {
	dx, dy := b.x-a.x, b.y-a.y
	length := float32(math.Hypot(float64(dx), float64(dy)))
	if length == 0 {
		return
	}
	nx, ny := -dy/length*half, dx/length*half
	z.MoveTo(a.x+nx, a.y+ny)
	z.LineTo(a.x-nx, a.y-ny)
	z.LineTo(b.x-nx, b.y-ny)
	z.LineTo(b.x+nx, b.y+ny)
	z.ClosePath()
}

// dot adds an octagon: a round end at this size.
func dot(z *vector.Rasterizer, p point, radius float32) {
	for i := range 8 {
		s, c := math.Sincos(float64(i) * math.Pi / 4)
		x, y := p.x+radius*float32(c), p.y+radius*float32(s)
		if i == 0 {
			z.MoveTo(x, y)
			continue
		}
		z.LineTo(x, y)
	}
	z.ClosePath()
}

// area fills between a line and the bottom of its axis.
func area(z *vector.Rasterizer, dst draw.Image, box image.Rectangle, points []point, zero float32, c color.RGBA) {
	if len(points) < 2 {
		return
	}
	z.Reset(box.Dx(), box.Dy())
	z.MoveTo(points[0].x, zero)
	for _, p := range points {
		z.LineTo(p.x, p.y)
	}
	z.LineTo(points[len(points)-1].x, zero)
	z.ClosePath()
	tint := color.NRGBA{c.R, c.G, c.B, 0x26}
	z.Draw(dst, box, image.NewUniform(tint), image.Point{})
}
