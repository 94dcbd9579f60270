package remedies_test

import (
	"strings"
	"testing"

	"github.com/openshift/update-preflight/collector/serving"
)

// widgets is a definition whose conversion webhook does not exist; its objects are stored in a version.
func widgets(stored string) string {
	versions := ""
	for _, name := range []string{"v1", "v2"} {
		storage := "false"
		if name == stored {
			storage = "true"
		}
		versions += "  - {name: " + name + ", served: true, storage: " + storage +
			", schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}\n"
	}
	return `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.example.com}
spec:
  group: example.com
  names: {kind: Widget, plural: widgets}
  scope: Namespaced
  conversion: {strategy: Webhook, webhook: {conversionReviewVersions: [v1], clientConfig: {service: {namespace: widget-system, name: conversion}}}}
  versions:
` + versions
}

// An operator was removed without its definition. Neither the definition nor a namespace with an object can be
// deleted before the conversion is None; an object with a finalizer keeps both until that is removed.
func TestConversionWebhookGone(t *testing.T) {
	apply(t, widgets("v1"))
	oc(t, "oc wait crd/widgets.example.com --for condition=Established --timeout=30s && oc create namespace shop")
	apply(t, "apiVersion: example.com/v1\nkind: Widget\nmetadata: {namespace: shop, name: plain}")
	apply(t, "apiVersion: example.com/v1\nkind: Widget\nmetadata: {namespace: default, name: kept, finalizers: [example.com/release]}")
	apply(t, widgets("v2"))

	oc(t, "oc delete namespace shop --wait=false && oc delete crd widgets.example.com --wait=false")
	until(t, "oc get crd widgets.example.com -o jsonpath='{.status.conditions}'", "InstanceDeletionFailed")
	until(t, "oc get namespace shop -o jsonpath='{.status.conditions}'", `"type":"NamespaceDeletionContentFailure"`)
	stuck := found(t, serving.Namespaces(), "NamespaceTerminating-shop")
	if named := oc(t, stuck.Actions[1].Command); !strings.Contains(named, "widgets.example.com") {
		t.Errorf("%s does not show the definition that stops the deletion:\n%s", stuck.Actions[1].Command, named)
	}

	remedy := found(t, serving.Conversions(), "Conversion-widgets.example.com")
	const deletion = "oc delete crd widgets.example.com"
	if len(remedy.Actions) != 2 || !strings.Contains(remedy.Remediation, deletion) {
		t.Fatalf("actions %+v, want those that set the strategy and list the finalizers, and the remedy %q to have %s", remedy.Actions,
			remedy.Remediation, deletion)
	}
	oc(t, remedy.Actions[0].Command)
	until(t, remedy.Actions[1].Command, "example.com/release")
	until(t, "oc get namespace shop --ignore-not-found", "")
	oc(t, `oc patch widgets.example.com kept --type merge -p '{"metadata":{"finalizers":null}}'`)
	oc(t, deletion+" --ignore-not-found --timeout=1m")
	until(t, "oc get crd widgets.example.com --ignore-not-found", "")
}

// The server of an API was removed. No namespace can be deleted before its APIService is.
func TestAPIServerGone(t *testing.T) {
	apply(t, `apiVersion: apiregistration.k8s.io/v1
kind: APIService
metadata: {name: v1beta1.custom.metrics.k8s.io}
spec: {group: custom.metrics.k8s.io, version: v1beta1, groupPriorityMinimum: 100, versionPriority: 100, insecureSkipTLSVerify: true, service: {namespace: metrics, name: adapter, port: 443}}`)
	until(t, "oc get apiservice v1beta1.custom.metrics.k8s.io -o jsonpath='{.status.conditions}'", "ServiceNotFound")
	oc(t, "oc create namespace cart 2>/dev/null; oc delete namespace cart --wait=false 2>/dev/null")
	until(t, "oc get namespace cart -o jsonpath='{.status.conditions}' 2>/dev/null", `"reason":"DiscoveryFailed"`)

	stuck := found(t, serving.Namespaces(), "NamespaceTerminating-cart")
	if shown := oc(t, stuck.Actions[1].Command+" 2>/dev/null"); !strings.Contains(shown, "v1beta1.custom.metrics.k8s.io") {
		t.Errorf("%s does not show the APIService that stops the deletion:\n%s", stuck.Actions[1].Command, shown)
	}
	remedy := found(t, serving.APIServices(), "APIService-v1beta1.custom.metrics.k8s.io")
	const deletion = "oc delete apiservice v1beta1.custom.metrics.k8s.io"
	if !strings.Contains(remedy.Remediation, deletion) {
		t.Fatalf("the remedy %q does not have %s", remedy.Remediation, deletion)
	}
	oc(t, deletion)
	until(t, "oc get namespace cart --ignore-not-found", "")
}

// An object that a finalizer keeps stops the deletion of its namespace; the command of the finding lists it.
func TestNamespaceWithFinalizers(t *testing.T) {
	oc(t, "oc create namespace till")
	apply(t, "apiVersion: v1\nkind: ConfigMap\nmetadata: {namespace: till, name: kept, finalizers: [example.com/release]}")
	oc(t, "oc delete namespace till --wait=false")
	until(t, "oc get namespace till -o jsonpath='{.status.conditions}'", `"reason":"SomeFinalizersRemain"`)
	stuck := found(t, serving.Namespaces(), "NamespaceTerminating-till")
	if listed := oc(t, stuck.Actions[1].Command); !strings.Contains(listed, "example.com/release") {
		t.Errorf("%s does not list the finalizer:\n%s", stuck.Actions[1].Command, listed)
	}
	oc(t, `oc -n till patch configmap kept --type merge -p '{"metadata":{"finalizers":null}}'`)
	until(t, "oc get namespace till --ignore-not-found", "")
}

// A bound volume stays until its claim is deleted.
func TestVolumeOfClaim(t *testing.T) {
	apply(t, `apiVersion: v1
kind: PersistentVolume
metadata: {name: shared}
spec: {capacity: {storage: 1Gi}, accessModes: [ReadWriteMany], storageClassName: "", cephfs: {monitors: [192.0.2.1]}, persistentVolumeReclaimPolicy: Retain}
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {namespace: default, name: data}
spec: {resources: {requests: {storage: 1Gi}}, accessModes: [ReadWriteMany], storageClassName: "", volumeName: shared}`)
	until(t, "oc get pv shared -o jsonpath='{.status.phase}'", "Bound")
	oc(t, "oc delete pv shared --wait=false")
	until(t, "oc get pv shared -o jsonpath='{.metadata.deletionTimestamp}{.metadata.finalizers}'", "kubernetes.io/pv-protection")
	oc(t, "oc delete pvc data --timeout=30s")
	until(t, "oc get pv shared --ignore-not-found", "")
}
