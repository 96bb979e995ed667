//! Secrets of each kind are removed, what only looks like one stays, and whatever is replaced opens the gate before it.

use super::*;

fn redact(text: &str) -> (String, u32) {
    let mut count = 0;
    let out = Redactor::builtin().redact(text, &mut count).into_owned();
    assert!(count == 0 || Redactor::builtin().touches(text.as_bytes()), "{text}");
    (out, count)
}

/// A made-up secret body of `len` letters and digits, so that no scanner takes this file for a leak.
fn body(len: usize) -> String {
    "a1B2c3D4e5F6g7H8".chars().cycle().take(len).collect()
}

fn hex(len: usize) -> String {
    "0a1b2c3d4e5f6789".chars().cycle().take(len).collect()
}

#[test]
fn tokens_by_their_shape() {
    let upper: String = "ABCD2345EFGH6723".into();
    for (kind, secret) in [
        ("aws-access-key-id", format!("AK{}{upper}", "IA")),
        ("gcp-api-key", format!("AI{}{}", "za", body(35))),
        ("github-token", format!("gh{}{}", "p_", body(36))),
        ("github-token", format!("gh{}{}", "s_", body(36))),
        ("github-token", format!("github_{}{}", "pat_", body(60))),
        ("gitlab-token", format!("gl{}{}", "pat-", body(20))),
        ("slack-token", format!("xo{}{}", "xb-", "123456789012-abcDEF")),
        ("openai-key", format!("s{}{}", "k-", body(48))),
        ("openai-key", format!("s{}{}", "k-proj-", body(48))),
        ("anthropic-key", format!("s{}{}", "k-ant-api03-", body(48))),
        ("huggingface-token", format!("h{}{}", "f_", body(34))),
        ("stripe-key", format!("s{}{}", "k_live_", body(24))),
        ("stripe-key", format!("r{}{}", "k_live_", body(24))),
        ("sendgrid-key", format!("S{}{}.{}", "G.", body(22), body(43))),
        ("twilio-key", format!("S{}{}", "K", hex(32))),
        ("npm-token", format!("np{}{}", "m_", body(36))),
        ("pypi-token", format!("py{}{}", "pi-", body(60))),
        ("digitalocean-token", format!("do{}{}", "p_v1_", hex(64))),
        ("telegram-token", format!("123456789:{}{}", "AA", body(33))),
        ("discord-token", format!("MT{}.{}.{}", body(24), body(6), body(30))),
        ("groq-key", format!("gs{}{}", "k_", body(52))),
        ("vault-token", format!("hv{}{}", "s.", body(30))),
        ("shopify-token", format!("shp{}{}", "at_", hex(32))),
        ("access-token", format!("dckr_{}{}", "pat_", body(27))),
        ("access-token", format!("gl{}{}_{}", "sa_", body(32), hex(8))),
        ("access-token", format!("ATA{}{}", "TT3xFfGF0", body(60))),
        ("access-token", format!("da{}{}", "pi", hex(32))),
        ("access-token", format!("ts{}{}-{}", "key-auth-", body(12), body(24))),
        ("access-token", format!("lin_{}{}", "api_", body(40))),
        ("access-token", format!("ruby{}{}", "gems_", hex(48))),
        ("access-token", format!("r{}{}", "8_", body(37))),
        ("access-token", format!("xa{}{}", "i-", body(80))),
        ("access-token", format!("NR{}{}", "AK-", "ABCDEFGHIJ0123456789KLMNOPQ")),
        ("access-token", format!("dp.{}{}", "pt.", body(40))),
        ("access-token", format!("nva{}{}", "pi-", body(64))),
        ("access-token", format!("pu{}{}", "l-", hex(40))),
        ("access-token", format!("{}.atlas{}.{}", body(14), "v1", body(60))),
        ("jwt", format!("ey{}{}.{}.{}", "J", body(20), body(20), body(20))),
    ] {
        for text in [format!("using {secret} now"), format!("x='{secret}'"), secret.clone()] {
            let (out, count) = redact(&text);
            assert_eq!((out, count), (text.replace(&secret, &format!("[redacted:{kind}]")), 1), "{kind}");
        }
    }
}

#[test]
fn secrets_by_their_context() {
    let forty = body(40);
    let p = "hunter2";
    let mut wrong = Vec::new();
    for (text, kind, secret) in [
        (format!("aws_secret_access_key = {forty}"), "aws-secret-access-key", forty.as_str()),
        (format!("\"SecretAccessKey\": \"{forty}\""), "aws-secret-access-key", &forty),
        (format!("DefaultEndpointsProtocol=https;AccountKey={forty}==;x"), "azure-account-key", &format!("{forty}==")),
        (format!("https://x.blob/y?sv=1&sig={forty}&se=2"), "azure-sas", &forty),
        (format!("POST https://hooks.slack.com/services/T0/B0/{forty}"), "slack-webhook", &format!("T0/B0/{forty}")),
        (format!("https://discord.com/api/webhooks/123456789012/{forty}"), "discord-webhook", &format!("123456789012/{forty}")),
        (format!("Authorization: Bearer {forty}"), "authorization", &forty),
        (format!("POST https://api.telegram.org/bot123456789:AA{}/getMe", body(33)), "telegram-token", &format!("123456789:AA{}", body(33))),
        (format!("#0 /srv/a.php(12): mysqli_connect('localhost', 'root', '{p}', 'shop')"), "password", p),
        (format!("#3 Db.php(7): PDO->__construct('mysql:host=db', 'root', '{p}', Array)"), "password", p),
        (format!("mnemonic: \"{}\"", "apple ".repeat(12).trim()), "mnemonic", "apple ".repeat(12).trim()),
        ("Authorization: Basic dXNlcjpwYXNz".to_owned(), "authorization", "dXNlcjpwYXNz"),
        (format!("'authorization': 'token {forty}'"), "authorization", &forty),
        (format!("curl with bearer {forty}"), "bearer", &forty),
        ("Set-Cookie: sid=abc123; Path=/".to_owned(), "cookie", "sid=abc123; Path=/"),
        ("postgres://bob:s3cret@db/x".to_owned(), "url-credentials", "bob:s3cret"),
        ("redis://:s3cret@db:6379".to_owned(), "url-credentials", ":s3cret"),
        (format!("password={p}"), "password", p),
        (format!("DB_PASSWORD={p}"), "password", p),
        (format!("passwd: {p}"), "password", p),
        (format!("ERROR: login DB_PASS={p} x"), "password", p),
        (format!("{{\"db_pass\":\"{p}\"}}"), "password", p),
        (format!("{{\"pass\":\"{p}\"}}"), "password", p),
        (format!("{{\"dbPass\": \"{p}\"}}"), "password", p),
        (format!("login with pass={p}"), "password", p),
        (format!("pass: {p}"), "password", p),
        (format!("APP_PW={p}"), "password", p),
        (format!("GITHUB_PAT={p}"), "password", p),
        (format!("dial root:{p}@tcp(db:3306)/x"), "url-credentials", &format!("root:{p}")),
        (format!("dsn=\"root:p@{p}@unix(/run/mysql.sock)/x\""), "url-credentials", &format!("root:p@{p}")),
        (format!("CREATE USER a IDENTIFIED BY '{p}'"), "password", p),
        (format!("CREATE USER a IDENTIFIED WITH caching_sha2_password BY '{p}'"), "password", p),
        (format!("create user a identified by '{p}'"), "password", p),
        (format!("CREATE ROLE a WITH PASSWORD '{p}';"), "password", p),
        (format!("{{\"sql\":\"ALTER ROLE a WITH PASSWORD \\\"{p}\\\"\"}}"), "password", p),
        (format!("<password>{p}</password>"), "password", p),
        (format!("<ns:dbPassword>{p}</ns:dbPassword>"), "password", p),
        (format!("passwd \"{p}\""), "password", p),
        (format!("    client-key-data: {forty}=="), "private-key", &format!("{forty}==")),
        (format!("password : '{p}'"), "password", p),
        (format!("{{\"password\":\"{p}\"}}"), "password", p),
        (format!("{{\\\"password\\\":\\\"{p}\\\"}}"), "password", p),
        (format!("Server=db;User Id=sa;Password={p};Encrypt=no"), "password", p),
        (format!("connect(host='x', password='{p}')"), "password", p),
        ("  password: correcthorse".to_owned(), "password", "correcthorse"),
        ("password = correcthorse".to_owned(), "password", "correcthorse"),
        (format!("--client_secret={p}"), "secret", p),
        (format!("api_key={p}&x=1"), "secret", p),
        (format!("\"apiKey\": \"{p}\""), "secret", p),
        (format!("access_key={p}"), "secret", p),
        (format!("token={forty}"), "secret", &forty),
        (format!("x-api-key: {forty}"), "secret", &forty),
        (format!("SECRET_KEY='{p}'"), "secret", p),
        (format!("signing_key={p}"), "secret", p),
        (format!("encryption-key={p}"), "secret", p),
        (format!("AuthKey={p}"), "secret", p),
        (format!("private-key: {p}"), "secret", p),
        // Command lines.
        (format!("+ curl -fsSL -u alice:{p} https://api.example.com/x"), "password", p),
        (format!("curl --user 'alice:{p}' https://api.example.com/x"), "password", p),
        (format!("curl -sualice:{p} https://api.example.com/x"), "password", p),
        (format!("Command '['curl', '-u', 'alice:{p}', 'https://api.example.com']' returned 22"), "password", p),
        (format!("mysqldump -uroot -p{p} shop"), "password", p),
        (format!("sh -c \"mysql -h db -u root -p'{p}' -e 'select 1'\""), "password", p),
        (format!("Command '['/usr/bin/mysql', '-uroot', '-p{p}']' failed"), "password", p),
        (format!("docker login -u alice -p {p} registry.example.com"), "password", p),
        (format!("sshpass -p {p} ssh alice@example.com"), "password", p),
        (format!("redis-cli -h cache -a {p} ping"), "password", p),
        (format!("openssl pkcs12 -in a.p12 -passin pass:{p} -nodes"), "password", p),
        (format!("keytool -list -storepass {p} -keystore a.jks"), "password", p),
        (format!("deploy --password {p} --host x"), "password", p),
        ("deploy --password correcthorse --host x".to_owned(), "password", "correcthorse"),
        ("deploy --db-password correcthorse".to_owned(), "password", "correcthorse"),
        ("deploy --password 'correct horse'".to_owned(), "password", "correct horse"),
        (format!("['deploy', '--password', '{p}']"), "password", p),
        (format!("[\"deploy\", \"--token\", \"{forty}\"]"), "secret", &forty),
        (format!("deploy --token {forty} x"), "secret", &forty),
        (format!("deploy --api-key {forty}"), "secret", &forty),
        (format!("deploy --client-secret \"{forty}\""), "secret", &forty),
        (format!("PGPASSWORD={p} psql -h db"), "password", p),
        (format!("git clone https://{forty}@git.example.com/a/b.git"), "url-credentials", &forty),
        (format!("curl https://{forty}:@api.example.com/v1"), "url-credentials", &format!("{forty}:")),
        ("jdbc:oracle:thin:scott/t1ger@db:1521/x".to_owned(), "url-credentials", "scott/t1ger"),
        // Files.
        ("//registry.example.com/:_authToken=a1b2c3d4".to_owned(), "secret", "a1b2c3d4"),
        ("//registry.example.com/:_auth=dXNlcjpwYXNz".to_owned(), "npm-token", "dXNlcjpwYXNz"),
        ("{\"auths\": {\"example.com\": {\"auth\": \"dXNlcjpwYXNzd29yZA==\"}}}".to_owned(), "docker-auth", "dXNlcjpwYXNzd29yZA=="),
        ("{\\\"auth\\\": \\\"dXNlcjpwYXNz\\\"}".to_owned(), "docker-auth", "dXNlcjpwYXNz"),
        ("machine api.example.com login alice password correcthorse".to_owned(), "password", "correcthorse"),
        (format!("  password {p}"), "password", p),
        // Cookies.
        ("Cookie: session=a1b2c3d4".to_owned(), "cookie", "session=a1b2c3d4"),
        ("'set-cookie': [ 'sid=a1b2c3; Path=/', 'b=c' ]".to_owned(), "cookie", "'sid=a1b2c3; Path=/', 'b=c' "),
        ("    'sid=a1b2c3; Path=/; HttpOnly',".to_owned(), "cookie", "a1b2c3"),
        ("curl --cookie sid=a1b2c3 https://example.com".to_owned(), "cookie", "a1b2c3"),
        (format!("https://x.example.com/a?X-Amz-Signature={}&x=1", hex(64)), "aws-signature", &hex(64)),
    ] {
        let (out, want) = (redact(&text), (text.replace(secret, &format!("[redacted:{kind}]")), 1));
        wrong.extend((out != want).then_some(out));
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn what_is_no_secret_stays() {
    let mut wrong = Vec::new();
    let sha = hex(40);
    let long = hex(64);
    for text in [
        "password is required",
        "token expired",
        "SyntaxError: unexpected token '}'",
        "Invalid token: foo",
        "Invalid token: foo12345",
        "syntax error near unexpected token: )",
        "unexpected token: }",
        "password=***",
        "secret=None",
        "password: null",
        "token=undefined",
        "commit 9f86d081884c7d659a2feaa0c55ad015",
        "id 550e8400-e29b-41d4-a716-446655440000",
        "PWD=/home/bob",
        "max_tokens=100",
        "tokens: 1234",
        "token: 12345",
        "password: must be at least 8 characters",
        "password=${DB_PASSWORD}",
        "password=$PW",
        "password=<your password>",
        "password = os.environ['PW']",
        "password=getpass()",
        "http://localhost:8080/a@b",
        "https://x.y/z?a=b",
        "see https://a.b:80 mail c@d.e",
        "task-sk-1",
        "disk-full",
        "ask-anything",
        "Bearer authentication is required",
        "WWW-Authenticate: Bearer realm=x",
        "cookie: too large",
        "Authorization header missing",
        "authorization failed: no",
        "the secret: nobody knows",
        "AKIA",
        "eyJ",
        "hf_hub_download",
        "npm_config_cache",
        "SKIP",
        "12:30:AA",
        "-----BEGIN CERTIFICATE-----",
        "token_type=bearer",
        "Unrecognized token 'abc123def'",
        "secret_name=foo",
        "password: xxxxxxxx",
        "Enter password: ",
        "[redacted:password]",
        "password=[redacted:password]",
        "KeyError: 'token'",
        "CSRF token: missing",
        "ssh://git@github.com/x",
        "sk-learn",
        "pypi-server",
        "xoxo",
        "postgres://user:***@db",
        "postgres://user:${PW}@db",
        "const apiKey = await getApiKey(x);",
        "TOKEN=[secure]",
        "export OPENAI_API_KEY=sk-...",
        "`KEY_TOKEN = undefined` set",
        "git push -u origin main",
        "docker run -u 1000:1000 curlimages/curl https://example.com",
        "curl -u alice https://example.com",
        "curl -o out http://example.com:8080/x",
        "curl: (7) Failed to connect to example.com port 80: Connection refused",
        "mysql -p shop",
        "mysql -u root --port 3306 -P 3306",
        "docker run --name mysql -p 3306:3306 mysql:8",
        "docker run mysql -p3306:3306",
        "mysql: [Warning] Using a password on the command line interface can be insecure.",
        "docker login -u alice -p $PW registry.example.com",
        "docker login --password-stdin registry.example.com",
        "sshpass -p ${PW} ssh example.com",
        "deploy --password-file /run/secrets/db",
        "deploy --password /run/secrets/db",
        "deploy --password --host x",
        "deploy --password $PW --host x",
        "deploy --password **** --host x",
        "deploy --password <PASSWORD>",
        "deploy --password PASSWORD",
        "error: --password is required",
        "error: option --password requires an argument",
        "the following arguments are required: --password, --token",
        "unexpected argument '--password' found",
        "try again with the --password option",
        "  --token string   Token of the server",
        "  --token TEXT",
        "docker build --secret id=npm,src=.npmrc .",
        "kubectl create --secret app-secret",
        "generate --max-tokens 100",
        "password expired yesterday",
        "  password expired",
        "login failed for user password",
        "{\"auth\": \"required\"}",
        "{\"auth\": \"oauth2ab\"}",
        "_auth=",
        "a_auth = x",
        "https://alice@bitbucket.org/a/b.git",
        "https://first-name.last-name@example.com/a",
        "https://example.com/@scope/name0123456789abcdef@1.2.3",
        "{ path: '/', domain: 'example.com' }",
        "mode=fast; path=/x",
        "jdbc:oracle:thin:@db:1521/x",
        "pass=12 fail=3",
        "tests pass: 12",
        "1 test with pass=\"x\"",
        "pass: mem2reg and then more",
        "pass=123456",
        "pass=1200ms total",
        "pass=tests/a1.py",
        "pass=test_login2",
        "{\"pass\": true, \"fail\": 0}",
        "{\"pass\": 12}",
        "second_pass=12",
        "first_pass=1",
        "bypass=abc123",
        "compass=north1",
        "passed=abc123",
        "file_pat=*.rs1234",
        "mail a:b@c.example and run tcp(1)",
        "root:***@tcp(db:3306)/x",
        "root:$PW@tcp(db:3306)/x",
        "the user is identified by 'name of it'",
        "IDENTIFIED BY '%s'",
        "Can't locate revision identified by 'nosuch'",
        "WITH PASSWORD '***'",
        "field password 'must be set'",
        "<password></password>",
        "<password>${db.password}</password>",
        "usage: login <user> <password>",
        "client-key-data: REDACTED",
        "r8_g8_b8_a8",
        "dapi docs",
        "xai-sdk",
        "glsa_",
    ]
    .into_iter()
    .chain([sha.as_str(), long.as_str()])
    {
        let out = redact(text);
        wrong.extend((out.0 != text || out.1 != 0).then_some(out));
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn a_private_key_goes_whole() {
    let begin = format!("-----BEGIN RSA {} KEY-----", "PRIVATE");
    let end = format!("-----END RSA {} KEY-----", "PRIVATE");
    let text = format!("\"private_key\": \"{begin}\\nMIIabc+/=\\n{end}\\n\", x");
    assert_eq!(redact(&text), ("\"private_key\": \"[redacted:private-key]\\n\", x".to_owned(), 1));
    let text = format!("{{\\\"key\\\": \\\"{begin}\\\\nMIIabc+\\/=\\\\r\\\\nQ==\\\\n{end}\\\\n\\\"}}");
    assert_eq!(redact(&text), ("{\\\"key\\\": \\\"[redacted:private-key]\\\\n\\\"}".to_owned(), 1));
    let mut lines: Vec<String> = ["before", &begin, "Proc-Type: 4,ENCRYPTED", "", "MIIabc+/=", &end, "after one"].map(str::to_owned).to_vec();
    let mut count = 0;
    Redactor::builtin().redact_lines(&mut lines, &mut count);
    let token = "[redacted:private-key]";
    assert_eq!(lines, ["before", token, token, token, token, token, "after one"]);
    assert_eq!(count, 1);
}

/// What a refused value begins with may be the key of another one.
#[test]
fn a_secret_behind_a_complaint_is_hidden() {
    for (text, hidden) in [
        ("error: Invalid token: secret=abc123def456", "error: Invalid token: secret=[redacted:secret]"),
        ("bad password: db_password=hunter2abc", "bad password: db_password=[redacted:password]"),
        ("invalid credentials: token=\"s3cr3tvalue99\"", "invalid credentials: token=\"[redacted:secret]\""),
        ("redis://:p@ssw0rd1@cache:6379/0", "redis://[redacted:url-credentials]@cache:6379/0"),
        ("http://shop@example.com/a@b", "http://shop@example.com/a@b"),
    ] {
        assert_eq!(redact(text).0, hidden);
    }
}

/// Each value is refused and begins with a key: reading all of them again would take time quadratic in the text.
#[test]
fn many_refused_values_are_hidden_in_the_end() {
    let text = "Invalid token: ".to_owned() + &"token:".repeat(100_000);
    assert!(redact(&text).0.len() < text.len());
    assert!(redact(&"invalid token: x=y é ".repeat(10_000)).0.len() > 10_000);
}

#[test]
fn several_secrets_in_one_line_are_counted() {
    let (out, count) = redact("password=a1b2c3 token=abcdef123 http://u:p1@h/");
    assert_eq!((out.as_str(), count), ("password=[redacted:password] token=[redacted:secret] http://[redacted:url-credentials]@h/", 3));
}

/// The text after each of many heads was once searched to its end.
#[test]
fn many_heads_of_keys_take_time_linear_in_the_text() {
    let text = "-----BEGIN RSA PRIVATE KEY-----abc ".repeat(20_000);
    let mut count = 0;
    assert_eq!(Redactor::builtin().redact(&text, &mut count), "[redacted:private-key]".repeat(20_000));
    assert_eq!(count, 20_000);
}

proptest::proptest! {
    /// The test before a regex never says no where the regex finds something.
    #[test]
    fn a_cheap_test_lets_all_secrets_pass(pieces in proptest::collection::vec(0_usize..24, 1..10)) {
        const PIECES: [&str; 24] = [
            "password", "PWD", "_pass", "passphrase", "secret", "_key", "api-key", "Token", "credentials", "secret_access_key_base", "=", ":", "=>", ":=", " ",
            "\t", "\"", "'", "\\", "x1y2z3", "://", "user:pw1@", "é", "signing",
        ];
        let text: String = pieces.iter().map(|&at| PIECES[at]).collect();
        for secret in &Redactor::builtin().secrets {
            let found = secret.regex().is_match(&text);
            proptest::prop_assert!(!found || secret.may_stand_in(&text), "{} {text}", secret.token);
        }
    }
}
