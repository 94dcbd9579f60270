package removedapi

import (
	"context"
	"fmt"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/openshift/update-preflight/collector/access"
	"github.com/openshift/update-preflight/collector/check"
	"github.com/openshift/update-preflight/collector/snapshot"
	"github.com/openshift/update-preflight/collector/words"
)

// maxNamedWriters bounds the field managers that a message names.
const maxNamedWriters = 3

// replaced are the APIs that replace those which Kubernetes removes from 1.32 on and whose
// objects are stored, with metadata that is not confidential.
func replaced() []schema.GroupVersionResource {
	flow, admission := flowcontrolv1.SchemeGroupVersion, admissionregistrationv1.SchemeGroupVersion
	return []schema.GroupVersionResource{
		flow.WithResource("flowschemas"), flow.WithResource("prioritylevelconfigurations"),
		admission.WithResource("validatingadmissionpolicies"), admission.WithResource("validatingadmissionpolicybindings"),
	}
}

func readsReplaced() []access.Request {
	var reads []access.Request
	for _, resource := range replaced() {
		reads = append(reads, check.List(resource.Group, resource.Resource))
	}
	return reads
}

// readWriters are the field managers that wrote objects of the API, resource.version.group.
// Where they cannot be read, there are none.
func readWriters(ctx context.Context, cluster *snapshot.Cluster, api string) []snapshot.Writer {
	for _, resource := range replaced() {
		rest, ok := strings.CutPrefix(api, resource.Resource+".")
		version, group, _ := strings.Cut(rest, ".")
		if !ok || group != resource.Group || version == resource.Version {
			continue
		}
		if writers, err := cluster.WritersOf(ctx, resource, version); err == nil {
			return writers
		}
	}
	return nil
}

func describeWriters(writers []snapshot.Writer) string {
	var texts []string
	for _, writer := range writers[:min(len(writers), maxNamedWriters)] {
		texts = append(texts, fmt.Sprintf("field manager %q (%s)", words.Line(writer.Manager, maxClientName), words.Count(writer.Objects, "object")))
	}
	return words.ListOf(texts, len(writers))
}
