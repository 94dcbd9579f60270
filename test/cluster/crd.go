package cluster

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"
)

// crdResources are the OpenShift resources that a preflight can read, by the
// directory of their manifests in the openshift/api module.
func crdResources() map[string][]string {
	return map[string][]string{
		"config/v1": {
			"apiservers", "authentications", "clusterimagepolicies", "clusteroperators", "clusterversions", "dnses", "featuregates",
			"imagedigestmirrorsets", "images", "imagetagmirrorsets", "infrastructures", "ingresses", "networks",
			"nodes", "oauths", "proxies", "schedulers",
		},
		"apiserver/v1":      {"apirequestcounts"},
		"route/v1":          {"routes"},
		"operator/v1":       {"cloudcredentials", "etcds", "ingresscontrollers", "machineconfigurations"},
		"operator/v1alpha1": {"imagecontentsourcepolicies"},
		"machine/v1beta1":   {"machinehealthchecks", "machinesets"},
		"machineconfiguration/v1": {
			"containerruntimeconfigs", "kubeletconfigs", "machineconfignodes", "machineconfigpools", "machineconfigs",
			"osimagestreams",
		},
	}
}

// boundRules replaces the rule of the IBM Cloud endpoints in Infrastructure by one
// on the URL itself, whose length is bounded. Kubernetes 1.37 assumes that the
// result of getEscapedPath is not, and rejects the manifests of the feature sets
// other than Default because of the estimated cost.
func boundRules(manifest []byte) []byte {
	return bytes.ReplaceAll(manifest,
		[]byte(`matches((url(self).getEscapedPath()), '^/(api/)?v[0-9]+/{0,1}$')`),
		[]byte(`self.matches('^[^:]+://[^/?#]*/(api/)?v[0-9]+/{0,1}([?#].*)?$')`))
}

// installCRDs creates the OpenShift resources and waits until they are served.
func (p *plan) installCRDs(ctx context.Context) error {
	start := time.Now()
	config := rest.CopyConfig(p.cluster.Config)
	config.WarningHandler = rest.NoWarnings{} // about formats that Kubernetes does not know
	clients, err := clientset.NewForConfig(config)
	if err != nil {
		return err
	}
	group, ctx := errgroup.WithContext(ctx)
	for _, file := range p.crds {
		group.Go(func() error {
			if err := p.installCRD(ctx, clients, file); err != nil {
				return fmt.Errorf("install %s: %w", filepath.Base(file), err)
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	p.done(fmt.Sprintf("%d OpenShift resources", len(p.crds)), start)
	return nil
}

func (p *plan) installCRD(ctx context.Context, clients clientset.Interface, file string) error {
	data, err := os.ReadFile(file) //nolint:gosec // a file of a module in go.mod
	if err != nil {
		return err
	}
	crd := &apiextensionsv1.CustomResourceDefinition{}
	if err := yaml.UnmarshalStrict(boundRules(data), crd); err != nil {
		return err
	}
	if p.stored {
		return initialize(ctx, clients, crd)
	}
	crds := clients.ApiextensionsV1().CustomResourceDefinitions()
	if _, err := crds.Create(ctx, crd, metav1.CreateOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
		return err
	}
	if err := p.see(ctx, "kube-apiserver", crd.Name, crds.Watch, established); err != nil {
		return err
	}
	return initialize(ctx, clients, crd)
}

// servedWithin bounds the time in which the API server serves a new resource, on a machine
// that has much else to do.
const servedWithin = time.Minute

// initialize waits until the API server serves the resource of a definition, and makes it
// start the cache of the resource, as the controllers of a cluster do that has run for a
// while. The first list is answered with 429 and would be repeated after a second, and for
// a moment with 404.
func initialize(ctx context.Context, clients clientset.Interface, crd *apiextensionsv1.CustomResourceDefinition) error {
	for _, version := range crd.Spec.Versions {
		if !version.Served {
			continue
		}
		list := clients.ApiextensionsV1().RESTClient().Get().AbsPath("apis", crd.Spec.Group, version.Name, crd.Spec.Names.Plural).MaxRetries(0)
		err := wait.PollUntilContextTimeout(ctx, 10*time.Millisecond, servedWithin, true, func(ctx context.Context) (bool, error) {
			err := list.Do(ctx).Error()
			if apierrors.IsNotFound(err) {
				return false, nil
			}
			if apierrors.IsTooManyRequests(err) {
				return true, nil
			}
			return err == nil, err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func established(event watch.Event) bool {
	crd, ok := event.Object.(*apiextensionsv1.CustomResourceDefinition)
	if !ok {
		return false
	}
	for _, condition := range crd.Status.Conditions {
		if condition.Type == apiextensionsv1.Established {
			return condition.Status == apiextensionsv1.ConditionTrue
		}
	}
	return false
}

// crdFiles returns the manifests of these resources, for the feature set, and the further ones.
func (p *plan) crdFiles(ctx context.Context, apis ...map[string][]string) ([]string, error) {
	files := slices.Clone(p.furtherCRDs)
	for _, resources := range append(apis, p.furtherAPIs) {
		if len(resources) == 0 {
			continue
		}
		module, err := p.moduleDir(ctx, "github.com/openshift/api")
		if err != nil {
			return nil, fmt.Errorf("OpenShift CRDs: %w", err)
		}
		for api, resources := range resources {
			for _, resource := range resources {
				file, err := p.crdFile(filepath.Join(module, api, "zz_generated.crd-manifests"), resource)
				if err != nil {
					return nil, err
				}
				files = append(files, file)
			}
		}
	}
	return files, nil
}

// crdFile selects the manifest of one resource: that of the feature set for a
// self-managed cluster, or the only one.
func (p *plan) crdFile(dir, resource string) (string, error) {
	for _, variant := range []string{"-SelfManagedHA-" + p.featureSet, "-" + p.featureSet, "-SelfManagedHA", ""} {
		// Manifests that are not part of a release have no numeric prefix.
		for _, prefix := range []string{"*_", ""} {
			found, err := filepath.Glob(filepath.Join(dir, prefix+resource+variant+".crd.yaml"))
			if err != nil {
				return "", err
			}
			if len(found) > 0 {
				return found[0], nil
			}
		}
	}
	return "", fmt.Errorf("no manifest of %s for feature set %q in %q", resource, p.featureSet, dir)
}

// moduleDir returns the directory of the source of a module.
func (p *plan) moduleDir(ctx context.Context, module string) (string, error) {
	var complaint bytes.Buffer
	cmd := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Dir}}", module) //nolint:gosec // a module of ours
	cmd.Dir, cmd.Stderr = p.root, &complaint
	output, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("go list -m %s: %w: %s", module, err, bytes.TrimSpace(complaint.Bytes()))
	}
	dir := strings.TrimSpace(string(output))
	if dir == "" {
		return "", fmt.Errorf("module %s is not downloaded: run `go mod download`", module)
	}
	return dir, nil
}
