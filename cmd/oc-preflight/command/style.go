package command

import (
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/openshift/update-preflight/collector/format"
)

// The values of --color.
const (
	colorAuto   = "auto"
	colorAlways = "always"
	colorNever  = "never"
)

// textFlags are the flags that change the text format.
type textFlags struct {
	color   string
	details bool
}

func (f *textFlags) add(c *cobra.Command) {
	f.addColor(c)
	c.Flags().BoolVar(&f.details, "details", false, "In text, list also what passed, and show every text in full.")
}

// limitFlag is --limit of a table with at most standard entries by default.
func limitFlag(c *cobra.Command, limit *int, standard int) {
	*limit = standard
	c.Flags().IntVar(limit, "limit", standard, "Most entries of the tables of text and wide; 0 lists all. Other formats have all.")
}

// limitOf is the limit of a style for a value of --limit.
func limitOf(limit int) int {
	if limit == 0 {
		return -1
	}
	return limit
}

func checkLimit(limit int) error {
	if limit < 0 {
		return fmt.Errorf("--limit=%d: it must not be negative; 0 lists all", limit)
	}
	return nil
}

func (f *textFlags) addColor(c *cobra.Command) {
	c.Flags().StringVar(&f.color, "color", colorAuto, "Color in text: always, never, or auto, on a terminal unless NO_COLOR is set. Symbols require a terminal and a UTF-8 locale.")
}

func (f *textFlags) checkColor() error {
	values := []string{colorAuto, colorAlways, colorNever}
	if slices.Contains(values, f.color) {
		return nil
	}
	return fmt.Errorf("--color=%s: it must be one of %s", f.color, strings.Join(values, ", "))
}

// style is that of a text on w.
func (f *textFlags) style(w io.Writer) format.Style {
	style := format.Style{Details: f.details, Color: f.color == colorAlways, Hint: "--details"}
	file, ok := terminal(w)
	if !ok {
		return style
	}
	style.Width, _ = terminalSize(file)
	if os.Getenv("TERM") == "dumb" {
		return style
	}
	style.Symbols = unicodeLocale()
	style.Color = style.Color || f.color == colorAuto && os.Getenv("NO_COLOR") == ""
	return style
}

// styleOf is the style of a text on w that has no flags.
func styleOf(w io.Writer) format.Style { return (&textFlags{color: colorAuto, details: true}).style(w) }

// unicodeLocale reports whether the locale has the encoding UTF-8.
func unicodeLocale() bool {
	for _, name := range []string{"LC_ALL", "LC_CTYPE", "LANG"} {
		if value := strings.ToUpper(os.Getenv(name)); value != "" {
			return strings.Contains(value, "UTF-8") || strings.Contains(value, "UTF8")
		}
	}
	return false
}

// terminal is a stream that is one.
func terminal(stream any) (*os.File, bool) {
	file, ok := stream.(*os.File)
	return file, ok && term.IsTerminal(int(file.Fd()))
}

// terminalSize is the size of a terminal in characters, 80 by 24 where it is unknown.
func terminalSize(file *os.File) (width, height int) {
	width, height, err := term.GetSize(int(file.Fd()))
	if err != nil || width < 20 || height < 4 {
		return 80, 24
	}
	return width, height
}
