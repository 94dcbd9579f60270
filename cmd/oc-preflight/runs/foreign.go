package runs

import (
	"fmt"
	"io"
	"strings"

	"github.com/openshift/update-preflight/collector/report"
	"github.com/openshift/update-preflight/runner/label"
)

// ReportForeign writes the objects that have the label of a run and are not of it,
// and the commands that remove the label.
func ReportForeign(w io.Writer, objects []report.Object, run string) {
	for _, object := range objects {
		scope := ""
		if object.Namespace != "" {
			scope = "-n " + object.Namespace + " "
		}
		fmt.Fprintf(w, "not deleted: %s has the label of run %s and is not of the run; remove the label with: oc %slabel %s %s %s-\n",
			object, run, scope, strings.ToLower(object.Kind), object.Name, label.Run)
	}
}
