package bundle

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/blang/semver/v4"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/openshift/update-preflight/collector/update"
)

// csv is the ClusterServiceVersion.
func (g generator) csv() (*unstructured.Unstructured, error) {
	deployments, images, err := g.deployments()
	if err != nil {
		return nil, err
	}
	apis, err := owned(g.parts.crds)
	if err != nil {
		return nil, err
	}
	icon, err := g.icon()
	if err != nil {
		return nil, err
	}
	annotations, err := g.csvAnnotations()
	if err != nil {
		return nil, err
	}
	kubernetes, known := update.Kubernetes(semver.Version(g.parts.oldest))
	if !known {
		return nil, fmt.Errorf("the Kubernetes of OpenShift %s is not known", g.parts.oldest.line())
	}
	spec := texts()
	maps.Copy(spec, map[string]any{
		"version": g.version.String(), "minKubeVersion": fmt.Sprintf("1.%d.0", kubernetes),
		"icon": icon, "relatedImages": images, "installModes": installModes(),
		"customresourcedefinitions": map[string]any{"owned": apis},
		"install": map[string]any{"strategy": "deployment", "spec": map[string]any{
			"deployments": deployments, "clusterPermissions": g.parts.entries(g.rights.cluster), "permissions": g.parts.entries(g.rights.namespaced),
		}},
	})
	return plain(map[string]any{
		"apiVersion": "operators.coreos.com/v1alpha1", "kind": csvKind,
		"metadata": map[string]any{"name": g.csvName(), "annotations": annotations}, "spec": spec,
	})
}

func (g generator) csvName() string { return Package + ".v" + g.version.String() }

// skipRange are the versions from which an update to this one is direct.
func (g generator) skipRange() string { return ">=0.0.0 <" + g.version.String() }

// plain is a value as it is written: with the types of JSON.
func plain(value any) (*unstructured.Unstructured, error) {
	text, err := json.Marshal(value)
	if err != nil {
		return nil, err
	}
	object := &unstructured.Unstructured{}
	return object, object.UnmarshalJSON(text)
}

// relatedImage is an image that mirrors copy.
type relatedImage struct {
	Name  string `json:"name"`
	Image string `json:"image"`
}

// deployments are the Deployment of the install strategy, and the images that it refers to.
func (g generator) deployments() (deployments []any, images []relatedImage, err error) {
	deployment := g.parts.deployment.DeepCopy()
	template, _, err := unstructured.NestedMap(deployment.Object, "spec", "template", "spec")
	if err != nil {
		return nil, nil, err
	}
	for _, list := range []string{"initContainers", "containers"} {
		used, err := g.images(template, list)
		if err != nil {
			return nil, nil, err
		}
		images = append(images, used...)
	}
	if !slices.ContainsFunc(images, func(each relatedImage) bool { return each.Image == g.Image }) {
		return nil, nil, fmt.Errorf("no container of %s has the image %s", named(deployment), ImageName)
	}
	if err := unstructured.SetNestedMap(deployment.Object, template, "spec", "template", "spec"); err != nil {
		return nil, nil, err
	}
	return []any{map[string]any{"name": deployment.GetName(), "label": deployment.GetLabels(), "spec": deployment.Object["spec"]}}, images, nil
}

// images sets the images of a list of containers, and returns them as related images.
func (g generator) images(template map[string]any, list string) ([]relatedImage, error) {
	containers, found, err := unstructured.NestedSlice(template, list)
	if err != nil || !found {
		return nil, err
	}
	var images []relatedImage
	for _, each := range containers {
		container, _ := each.(map[string]any)
		image, err := g.image(container)
		if err != nil {
			return nil, err
		}
		name, _ := container["name"].(string)
		images = append(images, relatedImage{Name: name, Image: image})
	}
	template[list] = containers
	return images, nil
}

// image sets the image of a container of the controller, and returns that of any.
func (g generator) image(container map[string]any) (string, error) {
	image, _ := container["image"].(string)
	if repository(image) == ImageName {
		container["image"] = g.Image
		return g.Image, nil
	}
	return image, checkImage("it in the manifests", fmt.Sprintf("container %v", container["name"]), image)
}

// icon is manifests/olm/icon.svg.
func (g generator) icon() ([]any, error) {
	text, err := os.ReadFile(filepath.Join(g.Manifests, "olm", "icon.svg"))
	if err != nil {
		return nil, err
	}
	return []any{map[string]any{"base64data": base64.StdEncoding.EncodeToString(lines(text)), "mediatype": "image/svg+xml"}}, nil
}

// installModes is all namespaces alone: the updates of a cluster have no namespace.
func installModes() []any {
	var modes []any
	for _, mode := range []string{"OwnNamespace", "SingleNamespace", "MultiNamespace", "AllNamespaces"} {
		modes = append(modes, map[string]any{"type": mode, "supported": mode == "AllNamespaces"})
	}
	return modes
}

// csvAnnotations are those that the console, catalogs and OLM read. createdAt is left out: equal sources have equal
// bundles.
func (g generator) csvAnnotations() (map[string]string, error) {
	template, err := json.Marshal(g.namespace)
	if err != nil {
		return nil, err
	}
	annotations := map[string]string{
		"alm-examples": example, "capabilities": "Basic Install", "categories": "OpenShift Optional, Monitoring",
		"containerImage": g.Image, "description": summary, "repository": repositoryURL, "support": "OpenShift update preflight",
		"olm.skipRange": g.skipRange(),
		"operatorframework.io/suggested-namespace":          g.namespace.GetName(),
		"operatorframework.io/suggested-namespace-template": string(template),
		"operators.operatorframework.io/uninstall-message":  uninstallMessage,
		"features.operators.openshift.io/disconnected":      "true",  // images by digest; releases from the mirrors of the cluster
		"features.operators.openshift.io/proxy-aware":       "true",  // HTTPS_PROXY, and the Proxy of the cluster
		"features.operators.openshift.io/fips-compliant":    "false", // Go's own cryptography, not built with GOFIPS140
		"features.operators.openshift.io/tls-profiles":      "false", // TLS 1.2 and later, whatever the profile of the cluster
		"features.operators.openshift.io/cnf":               "false",
		"features.operators.openshift.io/cni":               "false",
		"features.operators.openshift.io/csi":               "false",
		"features.operators.openshift.io/token-auth-aws":    "false",
		"features.operators.openshift.io/token-auth-azure":  "false",
		"features.operators.openshift.io/token-auth-gcp":    "false",
	}
	if g.namespace.GetLabels()["openshift.io/cluster-monitoring"] == "true" {
		annotations["operatorframework.io/cluster-monitoring"] = "true"
	}
	return annotations, nil
}
