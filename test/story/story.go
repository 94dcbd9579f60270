// Package story answers: which scenario does the demo show and a test verify?
//
// The update of a cluster from 5.1.3 to 5.2.0 is Blocked: the certificate of the
// ingress is too weak for that release, and an acknowledgement is missing. A
// machine config is outdated, the cloud credentials are in order. After the
// remedies the update is Ready, the plan to a later release is Clear, and the
// update was good.
package story

import (
	"context"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"maps"
	"math/big"
	"os"
	"path/filepath"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	configv1 "github.com/openshift/api/config/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/openshift/update-preflight/test/cluster"
	"github.com/openshift/update-preflight/test/objects"
	"github.com/openshift/update-preflight/test/openshift"
	"github.com/openshift/update-preflight/test/release"
)

// The versions of the story, the gate that must be acknowledged, and the Secret in the
// namespace openshift-ingress with the certificate of the remedies.
const (
	From           = "5.1.3"
	To             = "5.2.0"
	Gate           = "ack-5.1-kube-1.38-api-removals-in-5.2"
	NewCertificate = "default-new"
)

const gateText = `Kubernetes 1.38 and therefore OpenShift 5.2 remove several APIs which require admin
consideration. Please see https://access.redhat.com/articles/7112216 for details.`

// Remedy is one action of the administrator.
type Remedy struct {
	// Why is the purpose of the action.
	Why string
	// Command is the command line; its program is oc, oc-preflight or kubectl.
	Command []string
	// Write does what a command of oc does, which is not there; nil for the others.
	Write func(ctx context.Context, w *objects.Writer) error
}

// Prepare creates the release and the objects of the story in a new cluster, and
// returns the pull spec of the release. Files are written to directory. Root is
// the root of the repository. Prepare calls step before each step.
func Prepare(ctx context.Context, c *cluster.Cluster, root, directory string, step func(string)) (string, error) {
	step("building the release " + To + " with the checks of examples/")
	operand, err := os.ReadFile(filepath.Join(root, "test", "story", "operand.yaml")) //nolint:gosec // the repository's own file
	if err != nil {
		return "", err
	}
	//nolint:gosec // names of components, not credentials
	pullSpec, err := push(ctx, c.Registry, root, content{version: To, examples: map[string]string{
		"cloud-credential-operator": "cloud-credential",
		"cluster-ingress-operator":  "ingress",
		"machine-config-operator":   "machine-config",
	}, operand: map[string]string{"0000_50_cluster-ingress-operator_operand.yaml": string(operand)}})
	if err != nil {
		return "", err
	}
	step("signing it")
	signer, err := release.NewSigner("Story Release Key")
	if err != nil {
		return "", err
	}
	state, err := state(pullSpec, To, signer, directory)
	if err != nil {
		return "", err
	}
	if err := writeGraph(directory, state.Image, pullSpec); err != nil {
		return "", err
	}
	step("creating the objects of the story in the cluster")
	if err := openshift.Apply(ctx, c.Config, state); err != nil {
		return "", err
	}
	return pullSpec, applyObjects(ctx, c, root)
}

// content is what a release of the story has.
type content struct {
	version string
	// examples are the directories in examples/, by component.
	examples map[string]string
	// more are other manifests, by name; with one example.
	more map[string]string
	// operand are the manifests of a release without checks, by file.
	operand map[string]string
}

// push pushes the images of the examples, and of the release.
func push(ctx context.Context, registry, root string, of content) (string, error) {
	target := release.Release{
		Version: of.version, Previous: []string{From}, Padding: 200, PaddingBytes: 2048,
		Metadata: map[string]string{"url": "https://access.redhat.com/errata/RHBA-2026:0001"},
	}
	if len(of.operand) > 0 {
		target.Components = append(target.Components, release.Component{Name: "operand", Manifests: of.operand})
	}
	var binaries release.Binaries
	for component, example := range of.examples {
		program, err := binaries.Build(ctx, "examples/"+example)
		if err != nil {
			return "", err
		}
		image, err := release.BuildImage(ctx, registry, component, release.Image{
			Files:  map[string]release.File{"bin/preflight": {Mode: 0o755, Data: program}},
			Config: v1.Config{User: "65532"},
		})
		if err != nil {
			return "", err
		}
		manifests, err := readManifests(filepath.Join(root, "examples", example, "manifests"))
		if err != nil {
			return "", err
		}
		maps.Copy(manifests, of.more)
		target.Components = append(target.Components, release.Component{
			Name: component, Image: image, Source: "quay.io/openshift/origin-" + component, Manifests: manifests,
		})
	}
	return release.Push(ctx, registry, target)
}

func readManifests(directory string) (map[string]string, error) {
	entries, err := os.ReadDir(directory)
	if err != nil {
		return nil, err
	}
	manifests := map[string]string{}
	for _, entry := range entries {
		data, err := os.ReadFile(filepath.Join(directory, entry.Name())) //nolint:gosec // the repository's own files
		if err != nil {
			return nil, err
		}
		manifests[entry.Name()] = string(data)
	}
	return manifests, nil
}

// state returns the state of the cluster. The signature is in the cluster, as in one that
// is disconnected, and in a store on disk.
func state(pullSpec, version string, signer *release.Signer, directory string) (openshift.State, error) {
	signature, err := signer.Sign(pullSpec, "quay.io/openshift-release-dev/ocp-release:"+version+"-x86_64")
	if err != nil {
		return openshift.State{}, err
	}
	key, err := signer.PublicKey()
	if err != nil {
		return openshift.State{}, err
	}
	store := release.Store{}
	store.Add(pullSpec, signature)
	signatures := filepath.Join(directory, "signatures")
	if err := store.WriteDirectory(signatures); err != nil {
		return openshift.State{}, err
	}
	return openshift.State{
		Version: From, Image: "registry.example.com/openshift/release@sha256:" + fmt.Sprintf("%064d", 0), Since: installed(),
		Available:  map[string]string{version: pullSpec},
		Keys:       map[string][]byte{"verifier-public-key-story": key},
		Stores:     map[string]string{"store-story": "file://" + signatures},
		Signatures: store,
		Gates:      map[string]string{Gate: gateText},
		Acks:       map[string]string{},
		Namespaces: namespaces(),
		Topology:   configv1.HighlyAvailableTopologyMode,
		Operators:  operators(),
	}, nil
}

// Remedies writes a new certificate to directory, and returns the actions that make
// the update Ready.
func Remedies(directory string) ([]Remedy, error) {
	certificate, key, err := writeCertificate(directory)
	if err != nil {
		return nil, err
	}
	const useIt = `{"spec":{"defaultCertificate":{"name":"` + NewCertificate + `"}}}`
	return []Remedy{
		{
			Why:     "create a certificate that the OpenSSL of the target accepts",
			Command: []string{"oc", "-n", "openshift-ingress", "create", "secret", "tls", NewCertificate, "--cert=" + certificate, "--key=" + key},
			Write: func(ctx context.Context, w *objects.Writer) error {
				return createCertificate(ctx, w, certificate, key)
			},
		},
		{
			Why:     "let the ingress controller use it",
			Command: []string{"oc", "-n", "openshift-ingress-operator", "patch", "ingresscontroller", "default", "--type=merge", "-p", useIt},
			Write: func(ctx context.Context, w *objects.Writer) error {
				controllers := schema.GroupVersionResource{Group: "operator.openshift.io", Resource: "ingresscontrollers"}
				return w.Patch(ctx, objects.Object{GroupVersionResource: controllers, Namespace: "openshift-ingress-operator", Name: "default"}, useIt)
			},
		},
		{
			Why:     "acknowledge the admin gate, after doing what it requires",
			Command: []string{"oc-preflight", "ack", Gate},
		},
	}, nil
}

// createCertificate creates the Secret with the new certificate.
func createCertificate(ctx context.Context, w *objects.Writer, certificate, key string) error {
	secret := corev1.Secret{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"},
		ObjectMeta: metav1.ObjectMeta{Namespace: "openshift-ingress", Name: NewCertificate},
		Type:       corev1.SecretTypeTLS, Data: map[string][]byte{},
	}
	for name, path := range map[string]string{corev1.TLSCertKey: certificate, corev1.TLSPrivateKeyKey: key} {
		data, err := os.ReadFile(path) //nolint:gosec // a file of writeCertificate
		if err != nil {
			return err
		}
		secret.Data[name] = data
	}
	document, err := json.Marshal(secret)
	if err != nil {
		return err
	}
	return w.Apply(ctx, document)
}

// writeCertificate creates a certificate with an ECDSA key, and returns the paths
// of both.
func writeCertificate(directory string) (certificate, key string, err error) {
	certificate, key = filepath.Join(directory, "tls.crt"), filepath.Join(directory, "tls.key")
	private, err := newKey(key)
	if err != nil {
		return "", "", err
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "*.apps.example.com"}, DNSNames: []string{"*.apps.example.com"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().AddDate(1, 0, 0),
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, private.Public(), private)
	if err != nil {
		return "", "", err
	}
	return certificate, key, os.WriteFile(certificate, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o600)
}
