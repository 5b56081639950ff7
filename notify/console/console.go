// Package console prints messages as text for a terminal: at most 100 columns wide, with colours where the writer is a
// terminal.
package console

import (
	"context"
	"io"
	"os"
	"strconv"
	"sync"

	"vllm-triage/notify"
)

// Width is the number of columns that no line exceeds, words longer than that apart.
const Width = 100

// Colour says when to write ANSI colours.
type Colour int

// When to write ANSI colours.
const (
	Auto   Colour = iota // When the writer is a terminal and NO_COLOR is not set (https://no-color.org).
	Always               // Also into files and pipes.
	Never                // Plain text.
)

// Notifier prints to a writer.
type Notifier struct {
	w      io.Writer
	colour bool

	mu sync.Mutex
	n  int
}

var _ notify.Notifier = (*Notifier)(nil)

// New returns a notifier that prints to w.
func New(w io.Writer, c Colour) *Notifier {
	return &Notifier{w: w, colour: c == Always || c == Auto && isTerminal(w)}
}

// Name implements notify.Notifier.
func (n *Notifier) Name() string { return "console" }

// Post implements notify.Notifier. The reference counts the messages printed.
func (n *Notifier) Post(_ context.Context, channel string, m notify.Message) (notify.Ref, error) {
	return n.print(channel, m)
}

// Update implements notify.Notifier by printing the message anew: a terminal does not take lines back.
func (n *Notifier) Update(_ context.Context, ref notify.Ref, m notify.Message) error {
	_, err := n.print(ref.Channel, m)
	return err
}

// Reply implements notify.Notifier.
func (n *Notifier) Reply(_ context.Context, ref notify.Ref, m notify.Message) (notify.Ref, error) {
	return n.print(ref.Channel, m)
}

func (n *Notifier) print(channel string, m notify.Message) (notify.Ref, error) {
	text := Render(m, n.colour)
	n.mu.Lock()
	defer n.mu.Unlock()
	if _, err := io.WriteString(n.w, text+"\n"); err != nil {
		return notify.Ref{}, &notify.Error{Reason: notify.Unavailable, Err: err}
	}
	n.n++
	return notify.Ref{Channel: channel, ID: strconv.Itoa(n.n)}, nil
}

func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	if !ok || os.Getenv("NO_COLOR") != "" || os.Getenv("TERM") == "dumb" {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}
