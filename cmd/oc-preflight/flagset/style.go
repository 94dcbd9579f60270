package flagset

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/openshift/update-preflight/cmd/oc-preflight/completion"
	"github.com/openshift/update-preflight/cmd/oc-preflight/option"
	"github.com/openshift/update-preflight/cmd/oc-preflight/terminal"
	"github.com/openshift/update-preflight/collector/document/format"
)

// textFlags are the flags that change the text format.
type textFlags struct {
	color   string
	details bool
}

func (f *textFlags) add(c *cobra.Command) {
	f.AddColor(c)
	c.Flags().BoolVar(&f.details, "details", false, "In text, list also what passed; show every text in full.")
	option.Declare(c.Flags(), option.Option{Group: option.Output, Effect: option.OnDisplay, Again: option.Never}, "details")
}

// LimitFlag is --limit of a table with at most standard entries by default.
func LimitFlag(c *cobra.Command, limit *int, standard int) {
	*limit = standard
	c.Flags().IntVar(limit, "limit", standard, "Most entries of the tables of text and wide; 0 lists all. Other formats have all.")
	option.Declare(c.Flags(), option.Option{Group: option.Output, Effect: option.OnDisplay, Again: option.Never}, "limit")
}

// LimitOf is the limit of a style for a value of --limit.
func LimitOf(limit int) int {
	if limit == 0 {
		return -1
	}
	return limit
}

// CheckLimit rejects a negative value of --limit.
func CheckLimit(limit int) error {
	if limit < 0 {
		return fmt.Errorf("--limit=%d: it must not be negative; 0 lists all", limit)
	}
	return nil
}

func (f *textFlags) AddColor(c *cobra.Command) {
	c.Flags().StringVar(&f.color, "color", terminal.ColorAuto, "Color in text: always, never, or auto, on a terminal unless NO_COLOR is set. Symbols require a terminal and a UTF-8 locale.")
	option.Declare(c.Flags(), option.Option{Group: option.Output, Effect: option.OnDisplay, Again: option.Never}, "color")
	completion.Fixed(c, "color", terminal.ColorAuto, terminal.ColorAlways, terminal.ColorNever)
}

func (f *textFlags) checkColor() error {
	values := []string{terminal.ColorAuto, terminal.ColorAlways, terminal.ColorNever}
	if slices.Contains(values, f.color) {
		return nil
	}
	return fmt.Errorf("--color=%s: it must be one of %s", f.color, strings.Join(values, ", "))
}

// style decides colors, width and characters of a text that is written to w.
func (f *textFlags) style(w io.Writer) format.Style {
	style := terminal.StyleOf(w, f.color)
	style.Details, style.Hint = f.details, "--details"
	return style
}
