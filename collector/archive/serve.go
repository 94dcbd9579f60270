package archive

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	kjson "sigs.k8s.io/json"

	"github.com/openshift/update-preflight/collector/archive/inventory"
	"github.com/openshift/update-preflight/collector/gap"
)

type resource = inventory.Resource

type target struct {
	resource

	version         string
	namespace, name string
	// metadata is true for a request for the metadata only.
	metadata bool
}

// objects answers a request for one object or a list; path is that after the version.
func (a *Archive) objects(of target, path []string, request *http.Request) (answer, error) {
	if len(path) > 2 && path[0] == "namespaces" {
		of.namespace, path = path[1], path[2:]
	}
	of.Name = path[0]
	of.metadata = strings.Contains(request.Header.Get("Accept"), "as=PartialObjectMetadata")
	query := request.URL.Query()
	switch {
	case len(path) > 2 || query.Get("watch") != "":
		return absent(gap.Gap{Group: of.Group, Resource: strings.Join(path, "/"), Namespace: of.namespace}), nil
	case of.resource == resource{Name: "secrets"} && !of.metadata: // an archive has no values of Secrets
		return absent(gap.Gap{
			Resource: of.Name, Namespace: of.namespace, Name: strings.Join(path[1:], ""),
			Cause: "an archive contains no values of Secrets",
		}), nil
	case a.state.Unserved(of.resource):
		return failure(http.StatusNotFound, metav1.StatusReasonNotFound, "the server could not find the requested resource",
			gap.Gap{Group: of.Group, Resource: of.Name}), nil
	case len(path) == 2:
		of.name = path[1]
		return a.get(of)
	}
	return a.list(of, query)
}

func (a *Archive) get(of target) (answer, error) {
	t := a.state.Table(of.resource, of.namespace)
	found, ok := t.Find(of.namespace, of.name)
	if !ok {
		lack, incomplete := t.Missing(of.namespace, of.name)
		if incomplete {
			return absent(lack), nil
		}
		named := gap.Gap{Group: of.Group, Resource: of.Name, Namespace: of.namespace, Name: of.name}
		missing := failure(http.StatusNotFound, metav1.StatusReasonNotFound, fmt.Sprintf("%s %q not found", named.Qualified(), of.name), named)
		missing.gaps = inferred(t, of)
		return missing, nil
	}
	object, err := found.Object()
	if err == nil {
		object, err = present(object, found.Version, of)
	}
	if err != nil {
		//nolint:nilerr // the response reports the error
		return absent(gap.Gap{Group: of.Group, Resource: of.Name, Namespace: of.namespace, Name: of.name, Cause: err.Error()}), nil
	}
	return answer{code: http.StatusOK, body: object}, nil
}

// list answers with a page of a list: the token of the next one counts the objects.
func (a *Archive) list(of target, query url.Values) (answer, error) {
	matches, err := selector(query)
	if err != nil {
		return answer{}, err
	}
	t := a.state.Table(of.resource, of.namespace)
	entries := t.In(of.namespace)
	lack, incomplete := t.Missing(of.namespace, "")
	if incomplete && !lack.Partial {
		return absent(lack), nil
	}
	first, _ := strconv.Atoi(query.Get("continue"))
	limit, _ := strconv.Atoi(query.Get("limit"))
	page := page{target: of, kind: listKind(of.resource, t.Kind)}
	if page.gaps = inferred(t, of); incomplete {
		page.gaps = append(page.gaps, lack)
	}
	for at := max(first, 0); at < len(entries); at++ {
		if limit > 0 && page.count == limit {
			page.next = strconv.Itoa(at)
			break
		}
		page.add(entries[at], matches)
	}
	return page.answer()
}

// inferred states what is complete by the program that wrote the archive alone.
func inferred(t *inventory.Table, of target) []gap.Gap {
	if !t.Inferred(of.namespace, of.name) {
		return nil
	}
	return []gap.Gap{{Group: of.Group, Resource: of.Name, Namespace: of.namespace, Inferred: true}}
}

type page struct {
	target

	kind  string
	items bytes.Buffer
	count int
	next  string
	gaps  []gap.Gap
}

func (p *page) add(found inventory.Entry, matches func([]byte) (bool, error)) {
	object, err := found.Object()
	if err == nil {
		var ok bool
		if ok, err = matches(object); err == nil && !ok {
			return
		}
	}
	if err == nil {
		object, err = present(object, found.Version, p.target)
	}
	if err != nil {
		p.gaps = append(p.gaps, gap.Gap{Group: p.Group, Resource: p.Name, Namespace: p.namespace, Partial: true, Cause: err.Error()})
		return
	}
	if p.count++; p.count > 1 {
		p.items.WriteByte(',')
	}
	p.items.Write(object)
}

func (p *page) answer() (answer, error) {
	version := p.version
	if p.Group != "" {
		version = p.Group + "/" + version
	}
	if p.metadata {
		version, p.kind = metav1.SchemeGroupVersion.String(), "PartialObjectMetadataList"
	}
	head, err := json.Marshal(map[string]any{"apiVersion": version, "kind": p.kind, "metadata": metav1.ListMeta{Continue: p.next}})
	if err != nil {
		return answer{}, err
	}
	body := append(head[:len(head)-1], `,"items":[`...)
	body = append(append(body, p.items.Bytes()...), `]}`...)
	return answer{code: http.StatusOK, body: body, gaps: p.gaps}, nil
}

// present is an object of a version in the version and with the content that are asked for.
func present(object []byte, version string, of target) ([]byte, error) {
	if of.metadata {
		var has struct {
			Metadata json.RawMessage `json:"metadata"`
		}
		err := kjson.UnmarshalCaseSensitivePreserveInts(object, &has)
		return fmt.Appendf(nil, `{"apiVersion":%q,"kind":"PartialObjectMetadata","metadata":%s}`, metav1.SchemeGroupVersion.String(),
			cmp.Or(string(has.Metadata), "{}")), err
	}
	if version == of.version {
		return object, nil
	}
	return convert(object, of.resource, version, of.version)
}

// selector is the selection of objects by a query.
func selector(query url.Values) (func([]byte) (bool, error), error) {
	byLabel, err := labels.Parse(query.Get("labelSelector"))
	if err != nil {
		return nil, err
	}
	byField, err := fields.ParseSelector(query.Get("fieldSelector"))
	if err != nil {
		return nil, err
	}
	if byLabel.Empty() && byField.Empty() {
		return func([]byte) (bool, error) { return true, nil }, nil
	}
	return func(object []byte) (bool, error) {
		var of unstructured.Unstructured
		if err := json.Unmarshal(object, &of.Object); err != nil {
			return false, err
		}
		return byLabel.Matches(labels.Set(of.GetLabels())) && byField.Matches(fieldsOf{of.Object}), nil
	}, nil
}

// fieldsOf are the fields of an object by their path, such as "status.phase".
type fieldsOf struct{ object map[string]any }

func (f fieldsOf) Has(string) bool { return true }

func (f fieldsOf) Get(field string) string {
	value, _, err := unstructured.NestedFieldNoCopy(f.object, strings.Split(field, ".")...)
	if err != nil || value == nil {
		return ""
	}
	return fmt.Sprint(value)
}

// absent is the answer for objects that were not gathered. Its code is none that clients retry.
func absent(lack gap.Gap) answer {
	failed := failure(http.StatusNotImplemented, gap.Reason, "the archive has "+lack.String(), lack)
	failed.gaps = []gap.Gap{lack}
	return failed
}

func failure(code int32, reason metav1.StatusReason, message string, of gap.Gap) answer {
	status := metav1.Status{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: metav1.StatusFailure, Code: code, Reason: reason,
		Message: message,
		Details: &metav1.StatusDetails{Group: of.Group, Kind: of.Resource, Name: of.Name},
	}
	body, err := json.Marshal(status)
	if err != nil {
		body = nil // strings always encode
	}
	return answer{code: int(code), body: body}
}

// conversion is from one version of a resource to another. A nil change means that all fields of
// the old version have their meaning in the new one.
type conversion struct {
	resource

	from, to string
}

// conversions convert the versions that old clusters served.
func conversions() map[conversion]func(map[string]any) error {
	webhooks := func(name string) conversion {
		return conversion{resource{Group: "admissionregistration.k8s.io", Name: name}, "v1beta1", "v1"}
	}
	return map[conversion]func(map[string]any) error{
		{resource{Group: "policy", Name: "poddisruptionbudgets"}, "v1beta1", "v1"}:                                    convertBudget,
		{resource{Group: "batch", Name: "cronjobs"}, "v1beta1", "v1"}:                                                 nil,
		{resource{Group: "discovery.k8s.io", Name: "endpointslices"}, "v1beta1", "v1"}:                                convertSlice,
		{resource{Group: "apiregistration.k8s.io", Name: "apiservices"}, "v1beta1", "v1"}:                             nil,
		{resource{Group: "certificates.k8s.io", Name: "certificatesigningrequests"}, "v1beta1", "v1"}:                 nil,
		{resource{Group: "apiextensions.k8s.io", Name: "customresourcedefinitions"}, "v1beta1", "v1"}:                 convertDefinition,
		{resource{Group: "flowcontrol.apiserver.k8s.io", Name: "flowschemas"}, "v1alpha1", "v1"}:                      nil,
		{resource{Group: "flowcontrol.apiserver.k8s.io", Name: "flowschemas"}, "v1beta1", "v1"}:                       nil,
		{resource{Group: "flowcontrol.apiserver.k8s.io", Name: "flowschemas"}, "v1beta2", "v1"}:                       nil,
		{resource{Group: "flowcontrol.apiserver.k8s.io", Name: "flowschemas"}, "v1beta3", "v1"}:                       nil,
		{resource{Group: "admissionregistration.k8s.io", Name: "validatingadmissionpolicies"}, "v1beta1", "v1"}:       nil,
		{resource{Group: "admissionregistration.k8s.io", Name: "validatingadmissionpolicybindings"}, "v1beta1", "v1"}: nil,
		webhooks("mutatingwebhookconfigurations"):                                                                     nil,
		webhooks("validatingwebhookconfigurations"):                                                                   nil,
	}
}

// convert changes the version of an object. An unknown conversion is an error.
func convert(object []byte, of resource, from, to string) ([]byte, error) {
	change, ok := conversions()[conversion{of, from, to}]
	if !ok {
		return nil, fmt.Errorf("the archive contains them in version %s only", from)
	}
	var content map[string]any
	if err := json.Unmarshal(object, &content); err != nil {
		return nil, err
	}
	if change != nil {
		if err := change(content); err != nil {
			return nil, fmt.Errorf("version %s cannot be converted: %w", from, err)
		}
	}
	content["apiVersion"] = schema.GroupVersion{Group: of.Group, Version: to}.String()
	return json.Marshal(content)
}

// convertBudget removes a selector that is empty: in policy/v1beta1 it selects no pod, as none
// does in policy/v1, where an empty one selects all.
func convertBudget(budget map[string]any) error {
	selector, found, err := unstructured.NestedMap(budget, "spec", "selector")
	if err != nil || !found {
		return err
	}
	for _, key := range []string{"matchLabels", "matchExpressions"} {
		switch value := selector[key].(type) {
		case map[string]any:
			found = found && len(value) == 0
		case []any:
			found = found && len(value) == 0
		}
	}
	if found {
		unstructured.RemoveNestedField(budget, "spec", "selector")
	}
	return nil
}

// convertSlice sets the node of endpoints, which was a label of their topology.
func convertSlice(slice map[string]any) error {
	endpoints, _, err := unstructured.NestedSlice(slice, "endpoints")
	if err != nil {
		return err
	}
	for _, each := range endpoints {
		endpoint, ok := each.(map[string]any)
		if !ok {
			continue
		}
		node, found, err := unstructured.NestedString(endpoint, "topology", "kubernetes.io/hostname")
		if err != nil {
			return err
		}
		if _, set := endpoint["nodeName"]; found && !set {
			endpoint["nodeName"] = node
		}
		delete(endpoint, "topology")
	}
	slice["endpoints"] = endpoints
	return nil
}

// convertDefinition moves the version and the webhook of a CustomResourceDefinition; schemas stay out.
func convertDefinition(definition map[string]any) error {
	if _, found, err := unstructured.NestedSlice(definition, "spec", "versions"); err != nil || !found {
		name, _, nameErr := unstructured.NestedString(definition, "spec", "version")
		if err != nil || nameErr != nil {
			return fmt.Errorf("its versions cannot be read")
		}
		versions := []any{map[string]any{"name": name, "served": true, "storage": true}}
		if err := unstructured.SetNestedSlice(definition, versions, "spec", "versions"); err != nil {
			return err
		}
	}
	client, found, err := unstructured.NestedMap(definition, "spec", "conversion", "webhookClientConfig")
	if err != nil || !found {
		return err
	}
	reviews, _, err := unstructured.NestedSlice(definition, "spec", "conversion", "conversionReviewVersions")
	if err != nil {
		return err
	}
	webhook := map[string]any{"clientConfig": client, "conversionReviewVersions": reviews}
	return unstructured.SetNestedMap(definition, webhook, "spec", "conversion", "webhook")
}
