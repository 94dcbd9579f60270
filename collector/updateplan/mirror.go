package updateplan

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/openshift/update-preflight/collector/imageset"
)

// Mirror are the configurations of oc-mirror for the releases of the path, in the order in
// which they are mirrored; none for a plan that was read.
func (p Plan) Mirror() []imageset.File { return p.mirror }

// WriteImageSet writes the configurations of oc-mirror as one YAML stream, with the name of
// each in a comment.
// It is an error for a plan that was read.
func (p Plan) WriteImageSet(w io.Writer) error {
	if len(p.mirror) == 0 && len(p.Updates) > 0 {
		return errors.New("a stored plan does not have the configurations of oc-mirror: plan again")
	}
	var text strings.Builder
	for i, file := range p.mirror {
		if i > 0 {
			text.WriteString("---\n")
		}
		fmt.Fprintf(&text, "# %s: %s\n%s", file.Name, strings.Join(file.Releases, ", "), file.Content)
	}
	_, err := io.WriteString(w, text.String())
	return err
}

// WriteImages writes the pull spec of each release of the path, one per line, without the
// present one.
func (p Plan) WriteImages(w io.Writer) error {
	var text strings.Builder
	for _, each := range p.Updates {
		fmt.Fprintln(&text, each.Image)
	}
	_, err := io.WriteString(w, text.String())
	return err
}
