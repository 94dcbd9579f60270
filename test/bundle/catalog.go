package bundle

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

// catalogDockerfile is that of an image for a CatalogSource that extracts its content.
const catalogDockerfile = `FROM scratch
LABEL operators.operatorframework.io.index.configs.v1=/configs
COPY catalog /configs/
`

// catalog is the file-based catalog with this version. It contains the manifests, so that OLM v0 needs no image of the
// bundle.
func (g generator) catalog(objects []*unstructured.Unstructured) ([]byte, error) {
	csv := objects[0].Object
	icons, _, errIcon := unstructured.NestedSlice(csv, "spec", "icon")
	images, _, errImages := unstructured.NestedSlice(csv, "spec", "relatedImages")
	owned, _, errOwned := unstructured.NestedSlice(csv, "spec", "customresourcedefinitions", "owned")
	if err := errors.Join(errIcon, errImages, errOwned); err != nil {
		return nil, err
	}
	properties := []any{property("olm.package", map[string]any{"packageName": Package, "version": g.version.String()})}
	for _, each := range owned {
		api, _ := each.(map[string]any)
		name, _ := api["name"].(string)
		_, group, _ := strings.Cut(name, ".") // the name of a CustomResourceDefinition is PLURAL.GROUP
		properties = append(properties, property("olm.gvk", map[string]any{"group": group, "kind": api["kind"], "version": api["version"]}))
	}
	for _, object := range objects {
		text, err := json.Marshal(object)
		if err != nil {
			return nil, err
		}
		properties = append(properties, property("olm.bundle.object", map[string]any{"data": base64.StdEncoding.EncodeToString(text)}))
	}
	bundle := map[string]any{"schema": "olm.bundle", "package": Package, "name": g.csvName(), "properties": properties}
	if g.BundleImage != "" {
		bundle["image"] = g.BundleImage
		images = append(images, map[string]any{"name": "", "image": g.BundleImage})
	}
	bundle["relatedImages"] = images
	return documents(
		map[string]any{
			"schema": "olm.package", "name": Package, "defaultChannel": Channel, "description": summary,
			"icon": icons[0],
		},
		map[string]any{
			"schema": "olm.channel", "package": Package, "name": Channel,
			"entries": []any{map[string]any{"name": g.csvName(), "skipRange": g.skipRange()}},
		},
		bundle,
	)
}

// property is a property of a bundle in a catalog.
func property(kind string, value any) map[string]any {
	return map[string]any{"type": kind, "value": value}
}

// documents are values as indented documents of JSON.
func documents(values ...any) ([]byte, error) {
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	for _, value := range values {
		if err := encoder.Encode(value); err != nil {
			return nil, err
		}
	}
	return text.Bytes(), nil
}

// install are the objects by which an administrator installs the bundle from a catalog, with the Namespace of the manifests.
func (g generator) install() ([]byte, error) {
	metadata := map[string]any{"name": Package, "namespace": g.namespace.GetName()}
	text := bytes.NewBufferString("# Installs the controller from the CatalogSource update-preflight. The Namespace is that of the " +
		"manifests.\n")
	for i, object := range []any{
		g.namespace.Object,
		map[string]any{"apiVersion": "operators.coreos.com/v1", "kind": "OperatorGroup", "metadata": metadata, "spec": map[string]any{}},
		map[string]any{"apiVersion": "operators.coreos.com/v1alpha1", "kind": "Subscription", "metadata": metadata, "spec": map[string]any{
			"name": Package, "channel": Channel, "source": Package, "sourceNamespace": "openshift-marketplace",
		}},
	} {
		document, err := yaml.Marshal(object)
		if err != nil {
			return nil, err
		}
		if i > 0 {
			text.WriteString("---\n")
		}
		text.Write(document)
	}
	return text.Bytes(), nil
}
