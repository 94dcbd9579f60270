// Package versions answers: which versions do this program and the cluster have?
package versions

import (
	"github.com/openshift/update-preflight/collector/document"
	"github.com/openshift/update-preflight/collector/report"
)

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

// Kind is the kind in the JSON and YAML documents of the versions.
const Kind = "PreflightVersions"

// New is the document with the version of this program alone.
func New(client string) Versions {
	return Versions{APIVersion: report.APIVersion, Kind: Kind, Client: client}
}

// Document has one line for each version.
func (v Versions) Document(document.View) document.Document {
	table := document.Table{Title: "Versions"}
	table.Row("Client", v.Client)
	table.Row("Cluster", v.Cluster)
	table.Row("Kubernetes", v.Kubernetes)
	return document.Document{Title: "Versions of oc preflight and the cluster", Blocks: []document.Block{table}}
}
