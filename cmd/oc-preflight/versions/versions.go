// Package versions answers: which versions do this program and the cluster have?
package versions

import (
	"fmt"
	"io"

	"github.com/openshift/update-preflight/collector/report"
	"github.com/openshift/update-preflight/collector/words"
)

// maxLine bounds one version as text, in bytes.
const maxLine = 1 << 10

// Versions are the document of "version". What could not be read is empty.
type Versions struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	// Client is the version of this program.
	Client string `json:"client"`
	// Cluster is the release that ClusterVersion has as desired.
	Cluster string `json:"cluster,omitempty"`
	// Kubernetes is the version of the API server.
	Kubernetes string `json:"kubernetes,omitempty"`
}

// Kind is that of the document.
const Kind = "PreflightVersions"

// New is the document with the version of this program alone.
func New(client string) Versions {
	return Versions{APIVersion: report.APIVersion, Kind: Kind, Client: client}
}

// WriteText writes one line for each version.
func (v Versions) WriteText(w io.Writer) error {
	for _, each := range [][2]string{{"Client", v.Client}, {"Cluster", v.Cluster}, {"Kubernetes", v.Kubernetes}} {
		if each[1] == "" {
			continue
		}
		if _, err := fmt.Fprintf(w, "%-12s%s\n", each[0]+":", words.Line(each[1], maxLine)); err != nil {
			return err
		}
	}
	return nil
}
