package cluster

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// validity exceeds the lifetime of a test cluster.
const validity = 30 * 24 * time.Hour

// authority signs the certificates of one cluster.
type authority struct {
	dir  string
	key  *ecdsa.PrivateKey
	cert *x509.Certificate
}

// writeIdentities writes the keys, certificates and kubeconfigs of all
// components.
func (p *plan) writeIdentities() error {
	start := time.Now()
	dir := filepath.Join(p.cluster.Dir, "tls")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	ca, err := newAuthority(dir)
	if err != nil {
		return fmt.Errorf("create a certificate authority: %w", err)
	}
	p.identity = ca
	names := []string{"localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc", "kubernetes.default.svc.cluster.local"}
	addresses := []net.IP{net.IPv4(127, 0, 0, 1)}
	if !p.controlPlaneOnly {
		addresses = append(addresses, p.network.api().AsSlice(), p.network.gateway().AsSlice())
	}
	requests := map[string]x509.Certificate{
		"apiserver":         {Subject: pkix.Name{CommonName: "kube-apiserver"}, DNSNames: names, IPAddresses: addresses},
		"kubelet-server":    {Subject: pkix.Name{CommonName: p.node()}, IPAddresses: addresses},
		"apiserver-kubelet": {Subject: pkix.Name{CommonName: "kube-apiserver-kubelet-client", Organization: []string{"system:masters"}}},
	}
	for name, request := range requests {
		if err := ca.issue(name, &request); err != nil {
			return err
		}
	}
	if err := ca.writeKubeconfigs(p); err != nil {
		return err
	}
	p.done("certificates", start)
	return ca.writeKey("service-account")
}

// client is a client of the API with a kubeconfig.
type client struct {
	name, user, group string
}

// writeKubeconfigs writes a kubeconfig for each client of the API, with a token, and the
// file of the API server with all tokens. The rights of a client follow from its user
// and group, which are those of kubeadm's certificates
// (kubernetes.io/docs/setup/best-practices/certificates). Of a client certificate, an API
// server verifies the chain on every request, which was an eighth of its processor time.
func (a *authority) writeKubeconfigs(p *plan) error {
	clients := []client{
		{name: "admin", user: "admin", group: "system:masters"},
		// All controllers share one identity. With one each, the manager first
		// creates forty ServiceAccounts at its rate limit, which takes 4 s.
		{name: "controller-manager", user: "system:kube-controller-manager", group: "system:masters"},
		{name: "scheduler", user: "system:kube-scheduler"},
		{name: "kubelet", user: "system:node:" + p.node(), group: "system:nodes"},
	}
	var tokens strings.Builder
	for _, c := range clients {
		token := rand.Text()
		fmt.Fprintf(&tokens, "%s,%s,%s,%s\n", token, c.user, c.user, c.group)
		if err := a.writeKubeconfig(c.name, p.api, &clientcmdapi.AuthInfo{Token: token}); err != nil {
			return err
		}
	}
	if err := os.WriteFile(a.path("tokens.csv"), []byte(tokens.String()), 0o600); err != nil {
		return err
	}
	if err := a.writeCertificateKubeconfig(p); err != nil {
		return err
	}
	p.cluster.Kubeconfig = a.path("admin.kubeconfig")
	var err error
	p.cluster.Config, err = clientConfig(p.cluster.Kubeconfig)
	return err
}

// writeCertificateKubeconfig writes the kubeconfig of an administrator that the installer
// of OpenShift leaves.
func (a *authority) writeCertificateKubeconfig(p *plan) error {
	const name = "installer"
	p.cluster.CertificateKubeconfig = a.path(name + ".kubeconfig")
	subject := pkix.Name{CommonName: "system:admin", Organization: []string{"system:masters"}}
	if err := a.issue(name, &x509.Certificate{Subject: subject}); err != nil {
		return err
	}
	return a.writeKubeconfig(name, p.api, &clientcmdapi.AuthInfo{ClientCertificate: a.path(name + ".crt"), ClientKey: a.path(name + ".key")})
}

func (a *authority) writeKubeconfig(name, server string, credentials *clientcmdapi.AuthInfo) error {
	roots, err := os.ReadFile(a.path("ca.crt"))
	if err != nil {
		return err
	}
	config := clientcmdapi.NewConfig()
	config.Clusters["local"] = &clientcmdapi.Cluster{Server: "https://" + server, CertificateAuthorityData: roots}
	config.AuthInfos[name] = credentials
	config.Contexts["local"] = &clientcmdapi.Context{Cluster: "local", AuthInfo: name}
	config.CurrentContext = "local"
	return clientcmd.WriteToFile(*config, a.path(name+".kubeconfig"))
}

func newAuthority(dir string) (*authority, error) {
	a := &authority{dir: dir}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	a.key, a.cert = key, &x509.Certificate{
		Subject: pkix.Name{CommonName: "preflight test cluster"}, IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
	}
	der, err := a.sign(a.cert, &key.PublicKey)
	if err != nil {
		return nil, err
	}
	if a.cert, err = x509.ParseCertificate(der); err != nil {
		return nil, err
	}
	return a, a.write("ca.crt", "CERTIFICATE", der)
}

// issue writes a key and a certificate for both client and server.
func (a *authority) issue(name string, request *x509.Certificate) error {
	key, err := a.newKey(name)
	if err != nil {
		return err
	}
	request.KeyUsage = x509.KeyUsageDigitalSignature
	request.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth, x509.ExtKeyUsageServerAuth}
	der, err := a.sign(request, &key.PublicKey)
	if err != nil {
		return fmt.Errorf("sign a certificate for %q: %w", name, err)
	}
	return a.write(name+".crt", "CERTIFICATE", der)
}

func (a *authority) sign(request *x509.Certificate, public *ecdsa.PublicKey) ([]byte, error) {
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127))
	if err != nil {
		return nil, err
	}
	request.SerialNumber = serial
	// Tolerate a clock that is set back by up to a minute.
	request.NotBefore, request.NotAfter = time.Now().Add(-time.Minute), time.Now().Add(validity)
	return x509.CreateCertificate(rand.Reader, request, a.cert, public, a.key)
}

func (a *authority) writeKey(name string) error {
	key, err := a.newKey(name)
	if err != nil {
		return err
	}
	der, err := x509.MarshalPKIXPublicKey(&key.PublicKey)
	if err != nil {
		return err
	}
	return a.write(name+".pub", "PUBLIC KEY", der)
}

func (a *authority) newKey(name string) (*ecdsa.PrivateKey, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return nil, err
	}
	return key, a.write(name+".key", "EC PRIVATE KEY", der)
}

func (a *authority) write(name, kind string, der []byte) error {
	return os.WriteFile(a.path(name), pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600)
}

func (a *authority) path(name string) string { return filepath.Join(a.dir, name) }

// node returns the name of the node.
func (p *plan) node() string {
	if p.controlPlaneOnly {
		return "none"
	}
	return p.cluster.claim.name()
}
