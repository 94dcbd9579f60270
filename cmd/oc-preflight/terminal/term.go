package terminal

import (
	"io"
	"os"
	"strings"

	"golang.org/x/term"

	"github.com/openshift/update-preflight/collector/document/format"
)

// The values of --color.
const (
	ColorAuto   = "auto"
	ColorAlways = "always"
	ColorNever  = "never"
)

// Style is the style of a text on w that no flag changes.
func Style(w io.Writer) format.Style {
	style := StyleOf(w, ColorAuto)
	style.Details, style.Hint = true, "--details"
	return style
}

// StyleOf is the style of a text on w, for a value of --color.
func StyleOf(w io.Writer, color string) format.Style {
	style := format.Style{Color: color == ColorAlways}
	file, ok := Of(w)
	if !ok {
		return style
	}
	style.Width, _ = Size(file)
	if os.Getenv("TERM") == "dumb" {
		return style
	}
	style.Symbols = unicodeLocale()
	style.Color = style.Color || color == ColorAuto && os.Getenv("NO_COLOR") == ""
	return style
}

// unicodeLocale reports whether the locale has the encoding UTF-8.
func unicodeLocale() bool {
	for _, name := range []string{"LC_ALL", "LC_CTYPE", "LANG"} {
		if value := strings.ToUpper(os.Getenv(name)); value != "" {
			return strings.Contains(value, "UTF-8") || strings.Contains(value, "UTF8")
		}
	}
	return false
}

// Of returns the file of a stream that is a terminal.
func Of(stream any) (*os.File, bool) {
	file, ok := stream.(*os.File)
	return file, ok && term.IsTerminal(int(file.Fd()))
}

// Size is the size of a terminal in characters, 80 by 24 where it is unknown.
func Size(file *os.File) (width, height int) {
	width, height, err := term.GetSize(int(file.Fd()))
	if err != nil || width < 20 || height < 4 {
		return 80, 24
	}
	return width, height
}
