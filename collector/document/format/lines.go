package format

import (
	"fmt"
	"io"
	"strings"

	"github.com/openshift/update-preflight/collector/document"
	"github.com/openshift/update-preflight/collector/document/text"
	"github.com/openshift/update-preflight/collector/updateplan/imageset"
	"github.com/openshift/update-preflight/collector/words"
)

// maxName bounds a name on one line, in bytes.
const maxName = 256

type wide interface {
	Wide(view document.View) document.Document
}

// named has a name, or names, by which commands select it.
type named interface {
	Names() ([]string, error)
}

func writeNames(w io.Writer, value named, _ Style) error {
	names, err := value.Names()
	if err != nil {
		return err
	}
	for i, name := range names {
		names[i] = words.Line(name, maxName)
	}
	return writeLines(w, names)
}

// short has one line that stands alone.
type short interface {
	Short() string
}

func writeShort(w io.Writer, value short, _ Style) error {
	return text.Write(w, document.Document{Blocks: []document.Block{document.Paragraph{Text: value.Short()}}}, Style{})
}

type images interface {
	Images() []string
}

func writeImages(w io.Writer, value images, _ Style) error { return writeLines(w, value.Images()) }

func writeLines(w io.Writer, lines []string) error {
	var text strings.Builder
	for _, line := range lines {
		fmt.Fprintln(&text, line)
	}
	_, err := io.WriteString(w, text.String())
	return err
}

type imageSet interface {
	ImageSet() ([]imageset.File, error)
}

func writeImageSet(w io.Writer, value imageSet, _ Style) error {
	files, err := value.ImageSet()
	if err != nil {
		return err
	}
	var text strings.Builder
	for i, file := range files {
		if i > 0 {
			text.WriteString("---\n")
		}
		fmt.Fprintf(&text, "# %s: %s\n%s", file.Name, strings.Join(file.Releases, ", "), file.Content)
	}
	_, err = io.WriteString(w, text.String())
	return err
}

// graphData has risks in the form of the data of an update service, as YAML.
type graphData interface {
	GraphData() ([]byte, error)
}

func writeGraphData(w io.Writer, value graphData, _ Style) error {
	text, err := value.GraphData()
	if err != nil {
		return err
	}
	_, err = w.Write(text)
	return err
}
