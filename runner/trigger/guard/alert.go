package guard

import (
	_ "embed" // the manifests
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/openshift/update-preflight/collector/ownsignal"
	"github.com/openshift/update-preflight/runner/trigger/owned"
)

//go:embed alert.yaml
var alertManifest string

func prometheusRule() owned.Object {
	return owned.Object{
		GroupVersionResource: schema.GroupVersionResource{Group: "monitoring.coreos.com", Version: "v1", Resource: "prometheusrules"},
		Kind:                 "PrometheusRule", Namespace: ownsignal.Namespace, Name: ownsignal.ClusterOperator,
	}
}

// Service is the name of the Service of the metrics in the namespace of the objects. The
// job of its ServiceMonitor is that name, by which the alerts select the metrics, so the
// ServiceMonitor must not have a jobLabel.
const Service = "update-preflight"

// Alert is the switch of the alerts. They depend on the metrics of the controller, so the
// verdicts do not change them. The cluster's Prometheus uses them only if the namespace
// has the label openshift.io/cluster-monitoring=true, and the metrics have the job of
// [Service].
func Alert(client dynamic.Interface) *Switch {
	return &Switch{
		objects: objectsOf(nameAlert, client, prometheusRule()), now: time.Now,
		build: func(State, []*unstructured.Unstructured, time.Time) ([]*unstructured.Unstructured, error) {
			return owned.Parse(alertManifest)
		},
	}
}
