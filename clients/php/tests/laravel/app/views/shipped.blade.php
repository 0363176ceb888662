Your order {{ $order }} is on its way.
