package screen

import (
	"fmt"
	"io"
	"strings"

	"github.com/charmbracelet/x/ansi"
)

// Region is the last lines of a terminal, which are drawn again and again. What is above
// stays on the screen and in its scrollback, and the keyboard is not used.
type Region struct {
	w io.Writer
	// drawn are the widths of the lines, in columns.
	drawn []int
}

// NewRegion is an empty region of the terminal w.
func NewRegion(w io.Writer) *Region { return &Region{w: w} }

// Draw replaces the lines of the region, after writing scroll above them. width is the
// present number of columns of the terminal. A terminal that shows a line in several rows
// since it became narrower is erased by its rows.
func (r *Region) Draw(lines []string, scroll string, width int) error {
	if len(lines) == 0 && len(r.drawn) == 0 && scroll == "" {
		return nil
	}
	var page strings.Builder
	page.WriteString(ansi.SetModeSynchronizedOutput)
	r.erase(&page, width)
	page.WriteString(scroll)
	for _, line := range lines {
		page.WriteString(line + "\n")
		r.drawn = append(r.drawn, ansi.StringWidth(line))
	}
	page.WriteString(ansi.ResetModeSynchronizedOutput)
	_, err := io.WriteString(r.w, page.String())
	return err
}

// erase removes the lines. The cursor need not be in the first column: the terminal echoes
// Ctrl-C.
func (r *Region) erase(page *strings.Builder, width int) {
	rows := 0
	for _, drawn := range r.drawn {
		rows += max(1, (drawn+width-1)/max(width, 1))
	}
	if rows > 0 {
		page.WriteString("\r" + ansi.CursorUp(rows) + ansi.EraseScreenBelow)
	}
	r.drawn = r.drawn[:0]
}

// Fit is a text in at most height lines of at most width columns; the last counts those
// that are left out.
func Fit(text string, width, height int) []string {
	var lines []string
	for line := range strings.Lines(text) {
		lines = append(lines, clip(strings.TrimRight(line, "\n"), width))
	}
	return limited(lines, height, func(rest int) string { return clip(fmt.Sprintf("... and %d more lines", rest), width) })
}
