//! TLS to Redis.

use std::path::PathBuf;

use mcp_redis::{Redis, RedisOptions};
use mcp_session::{SessionId, SessionStore as _};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};

use crate::server::{Server, limited};

/// An authority, a certificate for the server, and one for the client, as PEM.
struct Certificates {
    authority: String,
    server: (String, String),
    client: (String, String),
}

fn certificates() -> Certificates {
    let mut params = CertificateParams::new(Vec::new()).unwrap();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    // Otherwise all of them have the same name, and look as if they had issued themselves.
    params.distinguished_name.push(rcgen::DnType::CommonName, "an authority for a test");
    let authority = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
    let issue = |name: &str| {
        let key = KeyPair::generate().unwrap();
        let certificate = CertificateParams::new([name.to_owned()]).unwrap().signed_by(&key, &authority).unwrap();
        (certificate.pem(), key.serialize_pem())
    };
    Certificates { authority: authority.pem(), server: issue("127.0.0.1"), client: issue("client") }
}

/// A folder with the files of a server, which is removed at the end.
struct Folder(PathBuf);

impl Folder {
    fn new(certificates: &Certificates) -> Self {
        let folder = std::env::temp_dir().join(format!("mcp-redis-tls-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let (certificate, key) = &certificates.server;
        for (name, content) in [("ca", &certificates.authority), ("cert", certificate), ("key", key)] {
            std::fs::write(folder.join(name), content).unwrap();
        }
        Self(folder)
    }

    fn file(&self, name: &str) -> String {
        self.0.join(name).to_str().unwrap().to_owned()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// The server has to show a certificate of a known authority, and the client its own where Redis wants it.
#[tokio::test]
async fn certificates_are_checked() {
    limited(async {
        let certificates = certificates();
        let folder = Folder::new(&certificates);
        let tls_port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let server = Server::start_with(|_| {
            ["--tls-port", &tls_port.to_string(), "--tls-cert-file", &folder.file("cert")]
                .into_iter()
                .chain(["--tls-key-file", &folder.file("key"), "--tls-ca-cert-file", &folder.file("ca")])
                .map(str::to_owned)
                .collect()
        });
        let Some(server) = server.await else { return };
        let url = format!("rediss://127.0.0.1:{tls_port}/");
        let (certificate, key) = &certificates.client;
        let trusting = RedisOptions::default().root_certificates(certificates.authority.as_str());
        let known = trusting.clone().client_certificate(certificate.as_str(), key.as_str());

        let redis = Redis::connect(&url, known.clone()).await.unwrap();
        assert_eq!(redis.sessions().load(SessionId::random().unwrap()).await.unwrap(), None);
        redis.change_bus().await.unwrap();
        // The same server without TLS has the same data.
        Redis::connect(&server.url(), known).await.unwrap();

        Redis::connect(&url, trusting).await.expect_err("a client that shows nothing is refused");
        let other = RedisOptions::default().client_certificate(certificate.as_str(), key.as_str());
        Redis::connect(&url, other).await.expect_err("the authority is not one of the operating system");
        let plain = url.replace("rediss:", "redis:");
        Redis::connect(&plain, RedisOptions::default()).await.expect_err("the port has TLS");
    })
    .await;
}
