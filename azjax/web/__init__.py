"""The web page: play, look into the search, watch runs. `azjax serve` starts it on 127.0.0.1."""
